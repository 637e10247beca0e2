"""Plain lines: a parser reads them equally, and queries give the same answers."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.io.blank_nodes import within_stream
from rsp_engine.io.canonical_literals import canonical_triples
from rsp_engine.io.sources.files.nquads import NQuads
from rsp_engine.model.streams import DeadLetter, Element
from rsp_engine.model.terms.columns import DECIMAL_KIND, DOUBLE_KIND, INTEGER_KIND
from rsp_engine.model.terms.fingerprints import fingerprints_of
from rsp_engine.operators.scoring.term_scores import number
from tests.drivers.cut import texts
from tests.drivers.split_runs import in_splits
from tests.thoroughness import examples

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
KINDS = {INTEGER_KIND: "integer", DECIMAL_KIND: "decimal", DOUBLE_KIND: "double"}
names = st.text("ab0-._/:#~% é<", max_size=4)
iris = st.builds("<{}://{}>".format, st.sampled_from(("http", "https", "urn")), names)
numbers = st.sampled_from(
    ("0", "7", "-3", "07", "1.5", "-0.25", "1.50", "1e3", "x", "", "12345678901")
)
kinds = st.sampled_from(("integer", "decimal", "double", "string", "date"))
literals = st.builds(f'"{{}}"^^<{XSD}{{}}>'.format, numbers, kinds)
words = st.builds('"{}"{}'.format, st.text('ab ."\\', max_size=3), st.sampled_from(("", "@en")))
terms = iris | literals | words | st.just("_:b")
blanks = st.sampled_from((" ", " ", " ", " ", "  ", "\t", "\v"))
ends = st.sampled_from((" .\n", " .\n", " .\n", ".\n", " . \n", " .\r\n", " .", " . #\n"))
lines = st.builds(
    "{0}{4}{1} {2} {3}{5}".format,
    iris | st.just(f"<{EX}a>"),
    iris | st.just(f"<{EX}p>"),
    terms,
    st.builds(f"<{EX}{{}}>".format, st.from_regex(r"\A[a-z0-9]{0,20}\Z")) | iris,
    blanks,
    ends,
)


@examples(1500)
@given(st.lists(lines, max_size=6), st.sampled_from(("", "#\n", "\n", f"<{EX}a>\n")))
def test_columns_are_what_a_parser_reads(found, other):
    data = (f'<{EX}a> <{EX}p> "1" <{EX}1> .\n' * 9 + other + "".join(found)).encode()
    assert_columns_are_what_a_parser_reads(data)


NAMESPACES = (
    "http://a.org/",
    "https://a.org/b/",
    "http://a.org/ns#",
    "http://a.org/b/c/",
    "http://",
)
local_names = st.text("aZ0-._/", max_size=20) | st.text("ab#/~@[`{:é", max_size=4)
near_iris = st.builds("<{}{}>".format, st.sampled_from(NAMESPACES), local_names)
escapes = st.sampled_from(
    (
        *(*"ab é.'", *(f"\\{each}" for each in "tbnrf\"'\\xu"), '"', "\x7f", "\x01"),
        *("\\u0041", "\\u00e9", "\\uD83D", "\\u12", "\\U0001F600", "\\U00110000"),
    )
)
near_texts = st.builds(
    '"{}"{}'.format,
    st.lists(escapes, max_size=4).map("".join),
    st.sampled_from(("", "", "@en", "@EN-gb", "@", f"^^<{XSD}integer>", f"^^<{XSD}string>")),
)
few_iris = st.lists(near_iris, min_size=1, max_size=3, unique=True)


@examples(1500)
@given(st.data(), few_iris, few_iris)
def test_columns_of_like_lines_are_what_a_parser_reads(data, subjects, predicates):
    """Lines that have prefixes and whole terms in common, several to an element."""
    line = st.builds(
        "{0}{4}{1} {2} <http://a.org/g/{3}>{5}".format,
        st.sampled_from(subjects) | near_iris,
        st.sampled_from(predicates),
        st.sampled_from(subjects) | near_texts | literals,
        st.sampled_from(("7", "7", "8", "08", "/8")),
        blanks,
        st.sampled_from((" .\n", " .\n", " .\n", "\t. # x\n", " .\r\n")),
    )
    assert_columns_are_what_a_parser_reads("".join(data.draw(st.lists(line, max_size=12))).encode())


def assert_columns_are_what_a_parser_reads(data: bytes) -> None:
    """Assert that whatever is read as columns is what the parser reads."""
    read = NQuads(_Input(data)).read_columns(lambda _, triples: within_stream(triples, 3))
    event("in columns" if read else "by blocks")
    if read is None:
        return
    columns, every = read.lines, np.arange(len(read.lines))
    items = list(NQuads(_Input(data)))
    elements = [item for item in items if isinstance(item, Element)]
    triples = within_stream(
        canonical_triples([triple for element in elements for triple in element.triples]), 3
    )
    assert [str(t) for t in triples] == columns.triples(every)
    assert [str(t.subject) for t in triples] == columns.subjects(every)
    assert [str(t.object) for t in triples] == columns.objects(every)
    for coded, written in (
        (columns.subject_codes(every), columns.subjects(every)),
        (columns.object_codes(every), columns.objects(every)),
    ):
        assert [coded.texts[code] for code in coded.codes] == written
        assert len(set(coded.texts)) == len(coded.texts)
    assert columns.fingerprints().tolist() == fingerprints_of([str(t) for t in triples]).tolist()
    for predicate in {str(t.predicate) for t in triples}:
        having = [n for n, t in enumerate(triples) if str(t.predicate) == predicate]
        assert columns.matching(predicate.encode()).tolist() == having
    for triple, value, kind in zip(triples, columns.values, columns.kinds, strict=True):
        if kind in KINDS:
            assert isinstance(triple.object, ox.Literal)
            assert triple.object.datatype.value == XSD + KINDS[kind]
            assert str(number(triple.object)) == str(value.item())
        else:
            assert np.isnan(value)
    assert [len(e.triples) for e in elements] == np.diff(
        [*np.flatnonzero(columns.begins), len(columns)]
    ).tolist()
    times = [element.timestamp for element in elements for _ in element.triples]
    assert times == columns.times.tolist()
    assert [letter for _, letter in read.letters] == [i for i in items if i not in elements]


class _Input:
    name = "a.nq"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def chunks(self):
        yield self._data


WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10ms STEP {}ms]"
HEAD = f"PREFIX : <{EX}> SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE 10ms STEP {{}}ms]"
QUERIES = (
    "WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 2",
    "WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY ?v LIMIT 1",
    "WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v * 2 - 1) LIMIT 3",
    "WHERE {{ WINDOW :w {{ ?s :p ?v }} SERVICE :svc {{ ?s :f ?f }} }}"
    " ORDER BY DESC(?v + ?f) LIMIT 2",
    "WHERE {{ WINDOW :w {{ ?s :p ?v FILTER (?v > 1 && ?v != 3) }} }} ORDER BY DESC(?v) LIMIT 3",
    "WHERE {{ WINDOW :w {{ ?s :p ?v FILTER (!(?v = 1.5 || 2 < ?v)) }} }} ORDER BY ?v LIMIT 3",
    "WHERE {{ WINDOW :w {{ ?s :p ?v FILTER (?v IN (0, 1.5)) FILTER (?s != :a) }} }}"
    " ORDER BY DESC(?v) LIMIT 3",
    "WHERE {{ WINDOW :w {{ ?s :p ?v FILTER (STRSTARTS(STR(?s), 'http://example.org/b')) }} }}"
    " ORDER BY DESC(?v) LIMIT 3",
    "WHERE {{ WINDOW :w {{ ?s :p ?v FILTER (?v + 1 > 2 && isNumeric(?v)) }} }} ORDER BY ?v LIMIT 3",
)
GROUPED = (
    "SELECT ?s (SUM(?v) AS ?n) {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}",
    "SELECT ?s (COUNT(*) AS ?n) {} WHERE {{ WINDOW :w {{ ?s :p ?v FILTER (?v >= 1) }} }}",
    "SELECT ?s (MAX(?v) AS ?n) {} WHERE {{ WINDOW :w {{ ?s :p ?v FILTER (?s < :c) }} }}",
    "SELECT ?s (AVG(?v) AS ?n) {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}",
    "SELECT ?s (COUNT(?v) AS ?n) {} WHERE {{ WINDOW :w {{ ?v :p ?s }} }}",
)
mentions = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from("abc"),
        st.sampled_from("pppq"),
        st.sampled_from(
            (
                *(f'"{n}"^^<{XSD}integer>' for n in range(4)),
                f'"1.5"^^<{XSD}double>',
                f'"1.5"^^<{XSD}decimal>',
                f'"02"^^<{XSD}integer>',
                f'"2"^^<{XSD}int>',
                '"a b"@en',
                f"<{EX}a>",
                "_:b",
                "malformed",
            )
        ),
    ),
    min_size=1,
    max_size=60,
)


QUERIES_ON_COLUMNS = (
    *(HEAD + query for query in QUERIES),
    *(
        f"PREFIX : <{EX}> {query.replace('{}', WINDOW, 1)} GROUP BY ?s ORDER BY DESC(?n) LIMIT 2"
        for query in GROUPED
    ),
)


@pytest.mark.parametrize("query", QUERIES_ON_COLUMNS)
@examples(60)
@given(found=mentions, step=st.integers(1, 12), in_order=st.booleans(), size=st.integers(1, 2000))
def test_plain_lines_give_the_same_answers(query, found, step, in_order, size):
    chosen = sorted(found) if in_order else found
    text = "".join(f"<{EX}{s}> <{EX}{p}> {v} <{EX}g/{t}> .\n" for t, s, p, v in chosen)
    assert_columns_change_no_answer(query.format(step), "s.nq", text, size, NQuads)


def assert_columns_change_no_answer(
    query: str, name: str, text: str, size: int, source: type
) -> None:
    """Assert that a file gives the same answers by elements, by columns, and in parsed splits."""
    remote = ox.Store()
    remote.extend(
        ox.Quad(ox.NamedNode(EX + s), ox.NamedNode(f"{EX}f"), ox.Literal(n))
        for n, s in enumerate("abc")
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text)

        def answers() -> list[str]:
            letters: list[DeadLetter] = []
            engine = Engine(max_delay=5, t0=-1, n=1, budget=1, dead_letter=letters.append)
            if "SERVICE" in query:
                engine.service(f"{EX}svc", remote)
            engine.register(query)
            engine.bind(f"{EX}s", str(path))
            return [*texts(engine), *map(str, letters)]

        with in_splits(are_split=False):
            expected = answers()
        assert answers() == expected
        with in_splits(size=size):
            assert answers() == expected
            with patch.object(source, "read_columns", lambda *_: None):
                assert answers() == expected
