"""N-Quads: runs of one graph, their times, and lines that are wrong."""

from __future__ import annotations

import gzip

import pytest

from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.files import graph_times
from tests.io.sources.reading import EX, blocks_of, places, read, shown, write

PROV = "http://www.w3.org/ns/prov#generatedAtTime"
XSD = "http://www.w3.org/2001/XMLSchema#"
SIZES = (1, 10, 100, 1_000_000)


def quad(subject: str, graph: str | None = None) -> str:
    name = f" <{EX}{graph}>" if graph else ""
    return f'<{EX}{subject}> <{EX}p> "x"{name} .\n'


def time_statement(graph: str, time: str, kind: str = "integer") -> str:
    return f'<{EX}{graph}> <{PROV}> "{time}"^^<{XSD}{kind}> .\n'


def at_every_size(spec):
    """Read a source with blocks of several sizes, which must not matter."""
    found = []
    for size in SIZES:
        with blocks_of(size):
            found.append(read(spec))
    assert all(reading == found[0] for reading in found)
    return found[0]


def test_an_element_is_a_run_of_quads_of_one_graph(tmp_path):
    text = quad("a", "g/10") + quad("b", "g/10") + quad("c", "g/20") + quad("d", "g/10")
    path = write(tmp_path / "a.nq", text)
    elements, letters = at_every_size(path)
    assert shown(elements) == [(10, 'a p "x" | b p "x"'), (20, 'c p "x"'), (10, 'd p "x"')]
    assert [element.position for element in elements] == [1, 3, 4]
    assert b"".join(element.raw for element in elements) == text.encode()
    assert letters == []


def test_blank_nodes_are_of_the_stream_and_keep_their_labels(tmp_path):
    text = f"_:a <{EX}p> _:b <{EX}1> .\n_:a <{EX}p> _:b <{EX}2> .\n"
    path = write(tmp_path / "a.nq", text)
    assert open_source(str(path)).blank_node_scope == "stream"
    assert shown(at_every_size(path)[0]) == [(1, "_:a p _:b"), (2, "_:a p _:b")]


def test_comments_and_empty_lines_count_as_lines_and_do_not_end_a_run(tmp_path):
    lines = ["# head\n", quad("a", "1"), "\n", "  # in\r\n", quad("b", "1"), "\n", quad("c", "2")]
    elements, letters = at_every_size(write(tmp_path / "a.nq", "".join(lines)))
    assert shown(elements) == [(1, 'a p "x" | b p "x"'), (2, 'c p "x"')]
    assert [element.position for element in elements] == [2, 7]
    assert letters == []
    assert elements[0].raw == (quad("a", "1") + quad("b", "1")).encode()


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_of_other_systems_are_read(tmp_path, end):
    text = (quad("a", "1") + quad("b", "1") + "#\n" + quad("c", "2")).replace("\n", end)
    elements, letters = at_every_size(write(tmp_path / "a.nq", text))
    assert shown(elements) == [(1, 'a p "x" | b p "x"'), (2, 'c p "x"')]
    assert letters == []


def test_a_triple_stands_in_an_element_once(tmp_path):
    elements, _ = at_every_size(write(tmp_path / "a.nq", quad("a", "1") * 3))
    assert shown(elements) == [(1, 'a p "x"')]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"this is no quad\n", "the quad cannot be read: "),
        (
            b'<http://example.org/a> <http://example.org/p> "\xff" <http://example.org/1> .\n',
            "UTF-8",
        ),
        (b"<relative> <http://example.org/p> 'x' .\n", "No scheme found"),
        (b"<urn:a> <urn:p> <urn:o> <urn:g:1> . <urn:a> <urn:p> <urn:o> <urn:g:1> .\n", "single"),
        (b"<urn:a> <urn:p> <urn:o> <urn:g:1>\n", "dot"),
        (
            b"<urn:a> <urn:p> " + b"<<( <urn:a> <urn:p> " * 5_000 + b"<urn:g:1> .\n",
            "more than 1000 deep",
        ),
    ],
)
def test_a_bad_line_is_set_aside_and_the_run_around_it_is_kept(tmp_path, line, reason):
    path = write(tmp_path / "a.nq", quad("a", "1").encode() + line + quad("b", "1").encode())
    elements, letters = at_every_size(path)
    assert shown(elements) == [(1, 'a p "x" | b p "x"')]
    assert elements[0].raw == (quad("a", "1") + quad("b", "1")).encode()
    assert places(letters) == [(2, line)]
    assert reason in letters[0].reason


def test_a_triple_of_the_default_graph_is_set_aside(tmp_path):
    path = write(tmp_path / "a.nq", quad("a", "1") + quad("b") + quad("c") + quad("d", "1"))
    elements, letters = at_every_size(path)
    assert shown(elements) == [(1, 'a p "x"'), (1, 'd p "x"')]
    assert places(letters) == [(2, quad("b").encode()), (3, quad("c").encode())]
    assert letters[0].reason == "it is in no graph, and does not state the time of one"


@pytest.mark.parametrize(
    ("time", "kind", "expected"),
    [
        ("5000", "integer", 5000),
        ("5000", "long", 5000),
        ("1970-01-01T00:00:05Z", "dateTime", 5000),
        ("1970-01-01T01:00:05.0009+01:00", "dateTimeStamp", 5000),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_time_that_is_said_can_stand_before_its_graph_or_after_it(
    tmp_path, time, kind, expected, is_first
):
    statement, graph = time_statement("g", time, kind), quad("a", "g")
    path = write(tmp_path / "a.nq", statement + graph if is_first else graph + statement)
    elements, letters = at_every_size(path)
    assert shown(elements) == [(expected, 'a p "x"')]
    assert letters == []


def test_a_time_that_was_said_before_goes_before_the_digits(tmp_path):
    text = (
        time_statement("g/10", "5000") + quad("a", "g/10") + quad("b", "g/20") + quad("c", "g/10")
    )
    elements, letters = at_every_size(write(tmp_path / "a.nq", text))
    assert shown(elements) == [(5000, 'a p "x"'), (20, 'b p "x"'), (5000, 'c p "x"')]
    assert letters == []


def test_a_time_that_is_said_after_a_graph_with_digits_comes_too_late(tmp_path):
    path = write(tmp_path / "a.nq", quad("a", "g/10") + time_statement("g/10", "5000"))
    elements, letters = at_every_size(path)
    assert shown(elements) == [(10, 'a p "x"')]
    assert places(letters) == [(2, time_statement("g/10", "5000").encode())]
    assert "no graph of this name follows" in letters[0].reason


def test_the_option_time_takes_one_of_the_two(tmp_path):
    path = write(
        tmp_path / "a.nq", time_statement("g/10", "5000") + quad("a", "g/10") + quad("b", "g/20")
    )
    elements, letters = at_every_size(f"{path}?time=iri")
    assert shown(elements) == [(10, 'a p "x"'), (20, 'b p "x"')]
    assert letters == []
    elements, letters = at_every_size(f"{path}?time=prov")
    assert shown(elements) == [(5000, 'a p "x"')]
    assert places(letters) == [(3, quad("b", "g/20").encode())]
    assert "no prov:generatedAtTime is given for its graph" in letters[0].reason


def test_a_graph_without_a_time_is_set_aside_at_the_end(tmp_path):
    text = (
        quad("a", "g") + quad("b", "1") + quad("c", "h") + quad("d", "g") + time_statement("h", "3")
    )
    elements, letters = at_every_size(write(tmp_path / "a.nq", text))
    assert shown(elements) == [(1, 'b p "x"'), (3, 'c p "x"')]
    assert places(letters) == [(1, quad("a", "g").encode()), (4, quad("d", "g").encode())]
    assert letters[0].reason.endswith("and the name does not end in a time")


def test_without_prov_a_graph_without_digits_is_set_aside_at_once(tmp_path):
    _, letters = at_every_size(f"{write(tmp_path / 'a.nq', quad('a', 'g'))}?time=iri")
    assert [letter.position for letter in letters] == [1]
    assert letters[0].reason.endswith("does not end in a time")


def test_digits_that_are_no_time_are_a_name(tmp_path):
    far = "g/" + "9" * 19
    elements, letters = at_every_size(
        write(tmp_path / "a.nq", quad("a", far) + time_statement(far, "7"))
    )
    assert shown(elements) == [(7, 'a p "x"')]
    assert letters == []


def test_a_blank_node_can_name_a_graph(tmp_path):
    text = f'_:g <{PROV}> "7"^^<{XSD}integer> .\n<{EX}a> <{EX}p> "x" _:g .\n'
    elements, letters = at_every_size(write(tmp_path / "a.nq", text))
    assert shown(elements) == [(7, 'a p "x"')]
    assert letters == []


@pytest.mark.parametrize(
    ("time", "kind", "reason"),
    [
        ("soon", "dateTime", "the time that it gives is not of the form"),
        ("1.5", "integer", "the time that it gives is not a whole number"),
        ("9" * 30, "integer", "the time that it gives does not fit"),
        ("5000", "string", "the time that it gives is neither an xsd:dateTime nor an xsd:integer"),
    ],
)
def test_a_time_that_is_none_is_set_aside(tmp_path, time, kind, reason):
    statement = time_statement("g/10", time, kind)
    elements, letters = at_every_size(write(tmp_path / "a.nq", statement + quad("a", "g/10")))
    assert shown(elements) == [(10, 'a p "x"')]
    assert places(letters) == [(1, statement.encode())]
    assert letters[0].reason.startswith(reason)


def test_a_time_said_again_is_the_same_and_a_newer_one_counts_from_there(tmp_path):
    text = (
        time_statement("g", "1") + time_statement("g", "1") + quad("a", "g")
        + time_statement("g", "1") + time_statement("g", "2") + quad("b", "g")
        + time_statement("g", "3") + time_statement("g", "4") + quad("c", "g")
    )  # fmt: skip
    elements, letters = at_every_size(write(tmp_path / "a.nq", text))
    assert [element.timestamp for element in elements] == [1, 2, 4]
    assert places(letters) == [(7, time_statement("g", "3").encode())]


def test_what_waits_too_long_is_set_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(graph_times, "MOST_WAITING", 2)
    text = "".join(quad(name, name) for name in "abc") + "".join(
        time_statement(n, "7") for n in "bcdef"
    )
    elements, letters = at_every_size(write(tmp_path / "a.nq", text))
    assert shown(elements) == [(7, 'b p "x"'), (7, 'c p "x"')]
    assert [letter.position for letter in letters] == [1, 6, 7, 8]
    assert "came in good time" in letters[0].reason


def test_of_the_times_that_were_used_only_the_last_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(graph_times, "MOST_REMEMBERED", 1)
    text = (
        time_statement("g", "1")
        + quad("a", "g")
        + time_statement("h", "2")
        + quad("b", "h")
        + quad("c", "g")
    )
    elements, letters = at_every_size(write(tmp_path / "a.nq", text))
    assert [element.timestamp for element in elements] == [1, 2]
    assert [letter.position for letter in letters] == [5]


def test_a_run_in_which_the_input_breaks_off_is_set_aside(tmp_path):
    text = quad("a", "1") + quad("b", "2") + quad("c", "2")
    packed = gzip.compress(text.encode()) + b"damaged"
    elements, letters = at_every_size(write(tmp_path / "a.nq.gz", packed))
    assert shown(elements) == [(1, 'a p "x"')]
    assert places(letters) == [(2, (quad("b", "2") + quad("c", "2")).encode()), (4, b"")]
    assert "may not be complete" in letters[0].reason
    assert letters[1].reason == "the gzip data are damaged here"
