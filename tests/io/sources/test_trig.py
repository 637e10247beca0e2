"""TriG: graph blocks, the prologue before them, and blocks that are wrong."""

from __future__ import annotations

import pytest

from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.files import blocks, trig_statements
from tests.io.sources.reading import blocks_of, places, read, shown, write

PREFIX = "@prefix e: <http://example.org/> .\n"
PROV = "@prefix prov: <http://www.w3.org/ns/prov#> .\n"
SIZES = (1, 5, 30, 1_000_000)


def at_every_size(spec):
    """Read a source with blocks of several sizes, which must not matter."""
    found = []
    for size in SIZES:
        with blocks_of(size):
            found.append(read(spec))
    assert all(reading == found[0] for reading in found)
    return found[0]


def trig(tmp_path, text):
    return at_every_size(write(tmp_path / "a.trig", text))


def test_an_element_is_a_graph_block(tmp_path):
    first, last = (
        "e:g1 { e:a e:p 'x' . e:b e:p 'x' }",
        "GRAPH <http://example.org/20>\n{e:c e:p 'x'}",
    )
    elements, letters = trig(tmp_path, f"{PREFIX}# a comment\n\n{first}\n{last}")
    assert shown(elements) == [(1, 'a p "x" | b p "x"'), (20, 'c p "x"')]
    assert [(e.position, e.raw) for e in elements] == [(4, first.encode()), (5, last.encode())]
    assert letters == []


def test_neighbouring_blocks_of_one_graph_are_two_elements(tmp_path):
    elements, _ = trig(tmp_path, PREFIX + "e:1 { e:a e:p 'x' } e:1 { e:a e:p 'x' }")
    assert shown(elements) == [(1, 'a p "x"')] * 2


def test_blank_nodes_are_of_their_element(tmp_path):
    assert open_source(str(write(tmp_path / "a.trig", ""))).blank_node_scope == "element"


@pytest.mark.parametrize(
    "text",
    [
        "e:1 { e:a e:p '}' }",
        'e:1 { e:a e:p "\\"}" }',
        "e:1 { e:a e:p '''}'\n''} . e:2 {''' }",
        'e:1 { e:a e:p """}"\n""} # """ }',
        "e:1 { e:a e:p <http://example.org/#x> }",
        "e:1 { # }\n e:a e:p '#' }",
        "e:1 { e:a\\.b e:p\\# '' }",
        "e:1 { e:a.b.c e:p 1.5, .5, 1.e5, 1, -1.0 . e:d e:p 'x'@en-gb.e:f e:p e:g.}",
        "e:1 { e:a e:p [ e:q ( 1 2 ) ; e:r [] ] }",
        "e:1 { e:a e:p 'x' {| e:q 'y' |} }",
        "e:1 { e:a e:p <<( e:a e:p e:c )>> . << e:a e:p e:c >> e:q 1 }",
        "e:1{}",
        "GRAPH e:1 { }",
    ],
)
def test_what_looks_like_an_end_is_not_always_one(tmp_path, text):
    elements, letters = trig_without_labels(tmp_path, f"{PREFIX}{text} e:2 {{ e:z e:p 'x' }}")
    assert letters == []
    assert [element.timestamp for element in elements] == [1, 2]
    assert elements[0].raw == text.encode()


def trig_without_labels(tmp_path, text):
    """Read at every size and compare all but the labels of blank nodes, which are random."""
    path = write(tmp_path / "a.trig", text)
    found = []
    for size in SIZES:
        with blocks_of(size):
            found.append(read(path))
    rawest = [[(e.timestamp, len(e.triples), e.position, e.raw) for e in es] for es, _ in found]
    assert all(raw == rawest[0] for raw in rawest)
    return found[0]


def test_directives_count_from_where_they_stand(tmp_path):
    text = """
        PREFIX e: <http://example.org/>  base <http://example.org/b/>
        <1> { e:a e:p <x> }
        @base <c/> . @prefix e: <d#> .
        <2> { e:a e:p <x> }
        VERSION "1.2"
        @prefix : <> . :3 { :a :p <x> }
    """
    elements, letters = trig(tmp_path, text)
    assert letters == []
    assert shown(elements) == [
        (1, "a p b/x"),
        (2, "b/c/d#a b/c/d#p b/c/x"),
        (3, "b/c/a b/c/p b/c/x"),
    ]


def test_a_time_can_be_said_before_a_graph_or_after_it(tmp_path):
    text = (
        f"{PREFIX}{PROV}e:g prov:generatedAtTime 7 . e:g {{ e:a e:p 'x' }}\n"
        "e:h { e:b e:p 'x' } { e:h prov:generatedAtTime 8 }"
    )
    elements, letters = trig(tmp_path, text)
    assert shown(elements) == [(7, 'a p "x"'), (8, 'b p "x"')]
    assert letters == []


def test_the_option_time_takes_one_of_the_two(tmp_path):
    text = f"{PREFIX}{PROV}e:g1 prov:generatedAtTime 7 . e:g1 {{ e:a e:p 'x' }}"
    path = write(tmp_path / "a.trig", text)
    assert shown(at_every_size(f"{path}?time=iri")[0]) == [(1, 'a p "x"')]
    assert shown(at_every_size(f"{path}?time=prov")[0]) == [(7, 'a p "x"')]


def test_other_triples_of_the_default_graph_are_set_aside(tmp_path):
    statement = "e:g prov:generatedAtTime 7 ; e:p 'x' ."
    elements, letters = trig(tmp_path, f"{PREFIX}{PROV}{statement}\ne:g {{ }}\n{{ }}")
    assert shown(elements) == [(7, "")]
    assert places(letters) == [(3, statement.encode())]
    assert letters[0].reason == "it is in no graph, and does not state the time of one"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("e:1 { e:a e:p }", "the TriG cannot be read: "),
        ("e:1 { e:a e:p 'x", "the TriG cannot be read: "),
        ("e:1 { e:a e:p '''x", "the TriG cannot be read: "),
        ("e:1 { e:a e:p 'x' .", "the TriG cannot be read: "),
        ("e:1 { f:a e:p 'x' }", "The prefix f: has not been declared"),
        ("e:1 { e:a e:p <a b> }", "the TriG cannot be read: "),
        ("@prefix f: <http://a b> .", "the TriG cannot be read: "),
        ("}", "the TriG cannot be read: "),
        ("e:a e:p", "the TriG cannot be read: "),
        ("_:b { <<( } )>> }", "the TriG cannot be read: "),
    ],
)
def test_a_bad_block_is_set_aside_and_its_neighbours_are_kept(tmp_path, bad, reason):
    first, last = "e:7 { e:a e:p 'x' }", "e:8 { e:b e:p 'x' }"
    elements, letters = trig(tmp_path, f"{PREFIX}{first}\n{bad}\n{last}\n")
    assert shown(elements) == [(7, 'a p "x"'), (8, 'b p "x"')]
    assert [element.position for element in elements] == [2, 4]
    assert {letter.position for letter in letters} == {3}
    assert b"".join(b"".join(letter.raw for letter in letters).split()) == b"".join(
        bad.encode().split()
    )
    assert reason in letters[0].reason


def test_a_bad_last_block_is_set_aside(tmp_path):
    elements, letters = trig(tmp_path, PREFIX + "e:7 { e:a e:p 'x' }\ne:8 { e:a e:p 'x' .\n\n")
    assert [element.timestamp for element in elements] == [7]
    assert [letter.position for letter in letters] == [3]
    assert letters[0].reason == "the TriG cannot be read: the statement has no end"


def test_a_statement_without_end_is_not_kept_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(trig_statements, "LONGEST_STATEMENT", 200)
    junk = "e:9 { " + "e:a e:p 'x' .\n" * 100 + "e:b '''"
    with blocks_of(50):
        elements, letters = read(
            write(tmp_path / "a.trig", f"{PREFIX}{junk}\ne:8 {{ e:a e:p 'x' }}")
        )
    assert [element.timestamp for element in elements] == [8]
    assert letters[0].position == 2
    assert "no end" in letters[0].reason


def test_a_line_that_is_too_long_is_left_out_and_the_blocks_around_it_are_kept(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(blocks, "LONGEST", 100)
    text = f"{PREFIX}e:7 {{ e:a e:p 'x' }}\n# {'x' * 300}\ne:8 {{ e:a e:p 'x' }}"
    for size in (1, 7, 60, 99):
        with blocks_of(size):
            elements, letters = read(write(tmp_path / "a.trig", text))
        assert [(element.timestamp, element.position) for element in elements] == [(7, 2), (8, 4)]
        assert [letter.position for letter in letters] == [3]
        assert "longer than 100 bytes" in letters[0].reason


def test_a_time_in_a_graph_that_is_out_of_range_is_told(tmp_path):
    text = f"{PREFIX}{PROV}e:g prov:generatedAtTime 99999999999999999999 . e:g {{ e:a e:p 'x' }}"
    elements, letters = read(f"{write(tmp_path / 'a.trig', text)}")
    assert elements == []
    assert "does not fit into 64 bits" in letters[0].reason
