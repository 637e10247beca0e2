"""Tables: the template, the time, and rows that are wrong."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import SourceError
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.files import blocks
from rsp_engine.io.sources.files.csv_table import CsvTable
from rsp_engine.io.sources.files.template import table_template
from rsp_engine.model.streams import Element
from tests.data import real_data
from tests.io.sources.reading import blocks_of, places, read, shown, write
from tests.thoroughness import examples

XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIX = "@prefix e: <http://example.org/> .\n"
MENTION = "<http://example.org/{user}> e:n '{n}' ."


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a template and a table, and returns the specification."""

    def put(text: str | bytes, template: str = MENTION, options: str = "", name: str = "a.csv"):
        pattern = write(tmp_path / "t.ttl", PREFIX + template)
        return f"{write(tmp_path / name, text)}?template={pattern}{options}"

    return put


def test_an_element_is_a_row(table):
    spec = table("timestamp,user,n\n10,ann,1\n20,bob,2")
    elements, letters = read(spec)
    assert shown(elements) == [(10, 'ann n "1"'), (20, 'bob n "2"')]
    assert [(e.position, e.raw) for e in elements] == [(2, b"10,ann,1\n"), (3, b"20,bob,2")]
    assert letters == []
    assert open_source(spec).blank_node_scope == "element"


def test_a_line_that_is_too_long_is_left_out_and_the_rows_around_it_are_kept(table, monkeypatch):
    monkeypatch.setattr(blocks, "LONGEST", 100)
    spec = table(f"timestamp,user,n\n10,ann,1\n20,{'x' * 300},2\n30,bob,3\n")
    for size in (1, 7, 60, 99):
        with blocks_of(size):
            elements, letters = read(spec)
        assert shown(elements) == [(10, 'ann n "1"'), (30, 'bob n "3"')]
        assert [letter.position for letter in letters] == [3]
        assert "longer than 100 bytes" in letters[0].reason


@pytest.mark.parametrize(
    ("template", "fields", "expected"),
    [
        ("<http://example.org/{a}> e:p '' .", ["x/../?#>é ", ""], "x%2F..%2F%3F%23%3E%C3%A9%20"),
        ("<http://example.org/{a}-{b}> e:p '' .", ["1", "2"], "1-2"),
        ("e:{a} e:p '' .", ["x/y", ""], "x%2Fy"),
        ("<http://{a}/> e:p '' .", ["evil/host", ""], "http://evil%2Fhost/"),
    ],
)
def test_a_value_stays_within_its_iri(template, fields, expected):
    (triple,) = table_template(PREFIX + template, ["a", "b"], "t").triples(fields)
    assert str(triple.subject).strip("<>").removeprefix("http://example.org/") == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("'{a}'", ox.Literal("7")),
        ('"{a} and {b}"', ox.Literal("7 and x\"'\n\\ .")),
        ('"""{b}"""', ox.Literal("x\"'\n\\ .")),
        ("'{a}'^^xsd:integer", ox.Literal("7", datatype=ox.NamedNode(XSD + "integer"))),
        ("'{a}'@en", ox.Literal("7", language="en")),
        ("'{{{a}}} {{b}}'", ox.Literal("{7} {b}")),
        ("'constant'", ox.Literal("constant")),
        ("7", ox.Literal(7)),
        ("'column0z column'", ox.Literal("column0z column")),
        (
            "<<( e:s e:p '{a}' )>>",
            ox.Triple(
                ox.NamedNode("http://example.org/s"),
                ox.NamedNode("http://example.org/p"),
                ox.Literal("7"),
            ),
        ),
    ],
)
def test_a_value_stays_within_its_literal(template, expected):
    found = table_template(f"{PREFIX}e:s e:p {template} .", ["a", "b"], "t").triples(
        ["7", "x\"'\n\\ ."]
    )
    assert [triple.object for triple in found] == [expected]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_no_value_can_become_anything_but_a_part_of_its_term(value):
    template = table_template("<urn:x:{a}> <urn:p:{a}> '{a}'@en .", ["a"], "t")
    (triple,) = template.triples([value])
    assert triple.object == ox.Literal(value, language="en")
    subject = str(triple.subject)
    assert subject.startswith("<urn:x:")
    assert not set(subject[7:-1]) & set("/?#:@<> \"'")


def test_a_triple_is_left_out_where_a_value_is_missing(table):
    spec = table("timestamp,user,n,m\n10,ann,,3\n20,,1,1\n", MENTION + " e:{user} e:m '{m}'.")
    assert shown(read(spec)[0]) == [(10, 'ann m "3"'), (20, "")]


def test_the_time_is_in_any_column_and_in_any_form(table):
    text = "n,user,when\n1,ann,1970-01-01 00:00:01.0009\n2,bob,2\n3,cyd,2.5\n"
    assert shown(read(table(text, options="&time=when"))[0]) == [
        (1000, 'ann n "1"'),
        (2, 'bob n "2"'),
    ]
    in_seconds, _ = read(table(text, options="&time=when&unit=s"))
    assert [element.timestamp for element in in_seconds] == [1000, 2000, 2500]


@pytest.mark.parametrize(
    ("text", "options", "name"),
    [
        ("timestamp;user;n\n10;ann;1\n", "&delimiter=;", "a.csv"),
        ("timestamp|user|n\n10|ann|1\n", "&delimiter=%7C", "a.csv"),
        ("timestamp\tuser\tn\n10\tann\t1\n", "&delimiter=tab", "a.csv"),
        ("timestamp\tuser\tn\n10\tann\t1\n", "", "a.tsv"),
        ("timestamp,user,n\r\n10,ann,1\r\n", "", "a.csv"),
        ("\ufefftimestamp, user ,n\n\n10,ann,1\n\n", "", "a.csv"),
        ('"timestamp","user","n"\n"10","ann","1"\n', "", "a.csv"),
        ("10,ann,1\n", "&columns=timestamp,user,n", "a.csv"),
    ],
)
def test_tables_are_written_in_many_ways(table, text, options, name):
    elements, letters = read(table(text, options=options, name=name))
    assert shown(elements) == [(10, 'ann n "1"')]
    assert letters == []


def test_a_row_can_span_lines_within_quotes(table):
    text = 'timestamp,user,n\n10,ann,"1\n2,""3\r\n"\n20,bob,2\n'
    for size in (1, 7, 100):
        with blocks_of(size):
            elements, letters = read(table(text))
        values = [element.triples[0].object for element in elements]
        assert values == [ox.Literal('1\n2,"3\r\n'), ox.Literal("2")]
        assert [element.position for element in elements] == [2, 5]
        assert elements[0].raw == b'10,ann,"1\n2,""3\r\n"\n'
        assert letters == []


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"15,ann\n", "it has 2 fields, not 3"),
        (b"15,ann,1,2\n", "it has 4 fields, not 3"),
        (b"soon,ann,1\n", "its time is not of the form"),
        (b",ann,1\n", "its time is missing"),
        (b"1.5,ann,1\n", "its time is not a whole number"),
        (b"99999999999999999999,ann,1\n", "its time does not fit"),
        (b"15,ann,\xff\n", "the row is not UTF-8"),
        (b'15,ann,"1\n', "the row cannot be read: "),
        (b'15,ann,"1"2\n', "the row cannot be read: "),
        (b"15,ann,%s\n" % (b"1" * 200_000), "the row cannot be read: field larger"),
    ],
)
@pytest.mark.parametrize("size", [1, 20, 1_000_000])
def test_a_bad_row_is_set_aside_and_its_neighbours_are_kept(table, row, reason, size):
    spec = table(b"timestamp,user,n\n10,ann,1\n" + row + b"20,bob,2\n")
    if size == 1 and len(row) > 1_000:
        size = 1_000
    with blocks_of(size):
        elements, letters = read(spec)
    assert shown(elements) == [(10, 'ann n "1"'), (20, 'bob n "2"')]
    assert places(letters) == [(3, row)]
    assert reason in letters[0].reason


def test_a_value_that_makes_no_iri_is_set_aside(table):
    _, letters = read(table("timestamp,user,n\n10,a/b,1\n", "<{user}:x> e:p 'x' ."))
    assert places(letters) == [(2, b"10,a/b,1\n")]
    assert "it does not fit into the template" in letters[0].reason


def test_a_table_can_be_read_twice(table):
    for options in ("", "&columns=timestamp,user,n"):
        source = open_source(
            table(
                "10,ann,1\n11,ann,1\n" if options else "timestamp,user,n\n10,ann,1\n",
                options=options,
            )
        )
        assert list(source) == list(source) != []


def test_a_table_comes_through_the_standard_input(table, monkeypatch, tmp_path):
    table("")
    data = io.BytesIO(b"timestamp,user,n\n10,ann,1\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(data))
    elements, _ = read(f"-?format=csv&template={tmp_path / 't.ttl'}")
    assert shown(elements) == [(10, 'ann n "1"')]


@pytest.mark.parametrize(
    ("text", "template", "options", "expected"),
    [
        ("", MENTION, "", ("it is empty", "the first row names")),
        ("\xff", MENTION, "", ("has no column timestamp", "the columns are")),
        ('"a\n', MENTION, "", ("its header cannot be read", "")),
        ("timestmp,user,n\n", MENTION, "", ("no column timestamp", "did you mean timestmp?")),
        ("a,b\n", MENTION, "", ("no column timestamp", "the columns are: a, b")),
        ("timestamp,usr,n\n", MENTION, "", ("names user, which is not", "did you mean usr?")),
        (
            "timestamp,x,y\n",
            MENTION,
            "",
            ("names user, which is not", "the columns are: timestamp"),
        ),
        ("timestamp,timestamp\n", MENTION, "", ("several columns timestamp", "once")),
        ("timestamp,user,n,n\n", MENTION, "", ("several columns have the name n", "once")),
        ("timestamp,n\n", "e:a e:p '{' .", "", ("an unmatched brace", "double a literal brace")),
        ("timestamp,n\n", "e:a e:p '}' .", "", ("an unmatched brace", "double a literal brace")),
        ("timestamp,n\n", "e:a e:p .", "", ("the template is not Turtle: line 2: ", "literal")),
        ("timestamp,n\n", "<{n}> e:p 1 .", "", ("the template is not Turtle", "after its start")),
        ("timestamp,n\n", "e:a e:p {n} .", "", ("the template is not Turtle", "in a literal")),
        ("timestamp,n\n", "# nothing", "", ("holds no triple", "")),
        ("timestamp,n\n", "e:a e:p 'x'^^e:{n} .", "", ("in a datatype, a language or a label", "")),
        ("timestamp,n\n", "_:b{n} e:p 'x' .", "", ("in a datatype, a language or a label", "")),
        ("timestamp\n", MENTION, "&delimiter=,,", ("delimiter cannot be ',,'", "one character")),
        ("timestamp\n", MENTION, "&delimiter=", ("delimiter cannot be ''", "one character")),
        ("timestamp\n", MENTION, "&unit=min", ("the option unit cannot be 'min'", "ms")),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_when_it_is_opened(
    table, text, template, options, expected
):
    with pytest.raises(SourceError) as refusal:
        open_source(table(text, template, options))
    message, hint = expected
    assert message in refusal.value.message
    assert hint in (refusal.value.hint or "")


def test_a_template_that_cannot_be_read_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", "timestamp\n")
    for bad, message in ((b"\xff", "not UTF-8"), (b" " * (3 << 20), "larger than 2 MB")):
        write(tmp_path / "t.ttl", bad)
        with pytest.raises(SourceError, match=message):
            open_source(f"{path}?template={tmp_path / 't.ttl'}")
    with pytest.raises(SourceError, match="the template cannot be read: No such file"):
        open_source(f"{path}?template={tmp_path / 'none.ttl'}")
    with pytest.raises(SourceError, match="this format needs a template"):
        open_source(str(path))


@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_bytes_give_elements_and_dead_letters_and_no_failure(data, size):
    with blocks_of(size), TemporaryDirectory() as folder:
        template = write(Path(folder, "t.ttl"), "<urn:x:{a}> <urn:p> '{b}' .")
        path = write(Path(folder, "a.csv"), data)
        assert all(open_source(f"{path}?template={template}&columns=timestamp,a,b"))


ROWS = st.lists(
    st.sampled_from(
        (
            "10,a,1",
            "11,b,",
            '12,"a,b",2',
            '13,"a\nb",3',
            "",
            "14,a",
            '15,"open',
            '16,"a"b,1',
            "\ufeff9,c,4",
        )
    ),
    max_size=12,
)


@examples(200)
@given(ROWS, st.booleans(), st.sampled_from((b"", b"\xef\xbb\xbf")), st.integers(1, 60))
def test_splits_give_the_rows_of_the_file(rows, has_header, mark, size):
    """Also where quotes hide the ends of lines, and where a row is malformed."""
    with TemporaryDirectory() as folder:
        template = write(Path(folder, "t.ttl"), "<urn:x:{a}> <urn:p> '{b}' .")
        lines = ["timestamp,a,b", *rows] if has_header else rows
        path = write(Path(folder, "a.csv"), mark + "\n".join(lines).encode())
        columns = "" if has_header else "&columns=timestamp,a,b"
        whole = open_source(f"{path}?template={template}{columns}")
        assert isinstance(whole, CsvTable)
        splits = list(whole.cut(size))
        sent = pickle.loads(pickle.dumps(whole))  # noqa: S301 - as executors receive it
        found = [
            (item.position + whole.lines_before(split), getattr(item, "triples", item.raw))
            for split in splits
            for item in sent.part(split)
        ]
        assert found == [(item.position, getattr(item, "triples", item.raw)) for item in whole]
        for place, split in enumerate(splits):
            assert list(whole.cut(size, split)) == splits[place + 1 :]


def test_rows_without_quotes_are_split_by_their_bytes(table):
    text = "timestamp,user,n\n" + "".join(f"{n},ann,{n}\n" for n in range(10, 90))
    source = open_source(table(text))
    assert isinstance(source, CsvTable)
    sizes = [(split.end or len(text)) - split.start for split in source.cut(100)]
    assert len(sizes) == 8
    assert max(sizes) < 120


def test_the_mentions_of_acquatop_are_read(tmp_path):
    template = write(tmp_path / "t.ttl", "<http://example.org/{user_id}> a <urn:Mentioned> .")
    path = real_data("acquatop") / "mentions_evening.csv"
    elements, letters = read(f"{path}?template={template}&time=timestamp_ms")
    assert (len(elements), letters) == (4_511, [])
    assert isinstance(elements[0], Element)
    assert elements[0].timestamp == 1_420_574_422_643


def test_the_trades_are_read_from_gzip(tmp_path):
    template = write(tmp_path / "t.ttl", "<urn:s:{SYMBOL}> <urn:price> '{PRICE}'^^xsd:decimal .")
    path = real_data("stock_ticks") / "sampleMultiTradeData.csv.gz"
    elements, letters = read(f"{path}?template={template}&time=DT")
    assert letters == []
    assert elements[0].timestamp == 1_410_946_200_531
