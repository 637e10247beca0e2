"""The text of a request: what goes into a VALUES block comes out of it, and nothing else does."""

from __future__ import annotations

import re

import pyoxigraph as ox
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rsp_engine.grammar import parse, tree
from rsp_engine.replica.pattern import Key, RemotePattern
from rsp_engine.replica.sparql_client.request_text import (
    batch_of,
    batches,
    key_fault,
    page_text,
    place_variable,
    whole_text,
    write_term,
)

E = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
BODY = f"{{ ?k <{E}p> ?v }}"
PATTERN = RemotePattern(E, BODY, ("k",), ("v",))

HOSTILE = [
    '"',
    "'",
    "\\",
    "\\u0022",
    "\\U00000022",
    "\n",
    "\r\n",
    "> . } #",
    "}",
    "{",
    '"""',
    "'''",
]
characters = st.characters(exclude_categories=["Cs"])
texts = st.lists(st.sampled_from(HOSTILE) | st.text(characters, max_size=4), max_size=6).map(
    "".join
)


def _iri(text: str) -> ox.NamedNode | None:
    try:
        return ox.NamedNode(text)
    except ValueError:
        return None


iris = (
    st.tuples(st.sampled_from(["urn:", E, "a+b.c:", f"{E}?q=", f"{E}#"]), st.text(characters))
    .map("".join)
    .map(_iri)
    .filter(lambda iri: iri is not None)
) | st.sampled_from([f"{E}'()", f"{E}é", "urn:%20", f"{E}\u202e", "mailto:a@b"]).map(ox.NamedNode)
tags = st.from_regex(r"[a-z]{2,8}(-[A-Z]{2})?(-[0-9][a-z0-9]{3})?(-x-[a-z]{1,8})?", fullmatch=True)
literals = st.one_of(
    texts.map(ox.Literal),
    st.builds(ox.Literal, texts, language=tags),
    st.builds(ox.Literal, texts, datatype=iris),
    st.builds(
        ox.Literal,
        st.sampled_from(["05", "+1", "1e9", "INF", "true", "1", "2020-01-01", "x", "-0.0"]),
        datatype=st.sampled_from(["integer", "double", "boolean", "date", "byte"]).map(
            lambda name: ox.NamedNode(XSD + name)
        ),
    ),
)
terms = iris | literals
keys = st.lists(terms, min_size=1, max_size=3).map(tuple)


def _block(text: str) -> list[tuple[tree.TermNode | None, ...]]:
    """Read the VALUES block of a request by the grammar of the engine."""
    form = parse(text).form
    assert isinstance(form, tree.SelectForm)
    data, group = form.where.elements
    assert isinstance(data, tree.InlineData)
    assert isinstance(group, tree.GroupPattern)
    return list(data.rows)


def _term(term: tree.TermNode | None) -> ox.NamedNode | ox.Literal:
    match term:
        case tree.Iri(value):
            return ox.NamedNode(value)
        case tree.Literal(lexical, _, str(language)):
            return ox.Literal(lexical, language=language)
        case tree.Literal(lexical, datatype):
            return ox.Literal(lexical, datatype=ox.NamedNode(datatype))
    raise AssertionError(term)


def _kept(terms: Key) -> list[object]:
    """Return terms as Oxigraph holds them: it writes some numbers in its own way."""
    store = ox.Store()
    for place, term in enumerate(terms):
        store.add(ox.Quad(ox.NamedNode(f"urn:{place}"), ox.NamedNode("urn:p"), term))
    return [
        next(store.quads_for_pattern(ox.NamedNode(f"urn:{place}"), None, None)).object
        for place in range(len(terms))
    ]


@given(st.lists(keys, min_size=1, max_size=4, unique=True))
@example([(ox.Literal("\\u0022 } #"),), (ox.Literal("\\\\U00000022"),), (ox.Literal("\x00￾"),)])
def test_any_term_in_a_values_block_parses_back_to_itself(drawn):
    width = max(map(len, drawn))
    drawn = [key + (ox.Literal(""),) * (width - len(key)) for key in drawn]
    names = tuple(f"k{place}" for place in range(width))
    batch = batch_of(RemotePattern(E, "{ }", names, ()), drawn)

    ours = [tuple(map(_term, row)) for row in _block(batch.text)]
    assert [row[0] for row in ours] == [ox.Literal(place) for place in range(len(drawn))]
    assert [row[1:] for row in ours] == drawn

    everything = batch.text.replace("SELECT ?place ", "SELECT * ", 1)
    found = ox.Store().query(everything)
    assert isinstance(found, ox.QuerySolutions)
    theirs = [[solution[name] for name in names] for solution in found]
    assert theirs == [_kept(key) for key in drawn]


@given(texts)
def test_a_server_that_undoes_escapes_before_it_reads_sees_the_same(text):
    r"""`\u` is undone in the whole text first, even behind an escaped backslash."""
    written = write_term(ox.Literal(text))
    undone = re.sub(r"\\u([0-9A-Fa-f]{4})", lambda match: chr(int(match[1], 16)), written)
    assume("\\U" not in text)
    found = parse(f"SELECT * {{ VALUES ?k {{ {undone} }} }}").form
    assert isinstance(found, tree.SelectForm)
    assert _term(found.where.elements[0].rows[0][0]) == ox.Literal(text)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "<http://e.org/a b> <urn:p> 1 .",
        "<http://e.org/\\u003E\\u0020.\\u0020\\u007D> <urn:p> 1 .",
        '<urn:s> <urn:p> "a"^^<http://e.org/ }> .',
    ],
)
def test_a_hostile_term_of_a_lenient_reader_is_never_asked_for(text):
    """A lenient reader makes terms that the constructors would refuse."""
    (quad,) = ox.parse(text.encode(), format=ox.RdfFormat.TURTLE, lenient=True)
    is_iri_hostile = "e.org" in str(quad.subject)
    term = quad.subject if is_iri_hostile else quad.object
    assert isinstance(term, ox.NamedNode | ox.Literal)
    assert key_fault((term,)) == "key that cannot be written"
    with pytest.raises(ValueError, match=r"."):
        write_term(term)


def test_what_cannot_be_asked_for_has_its_cause():
    assert key_fault((ox.NamedNode(E), ox.BlankNode("b"))) == "blank node key"
    assert key_fault((ox.Literal("x" * 70_000),)) == "key too long"
    directed = ox.Literal("x", language="ar", direction=ox.BaseDirection.RTL)
    assert key_fault((directed,)) == "key that cannot be written"
    assert key_fault((ox.Literal("x" * 60_000),)) is None


@given(st.lists(literals.map(lambda term: (term,)), max_size=30), st.integers(1, 5))
def test_batches_hold_every_key_once_within_both_bounds(drawn, most_keys):
    askable = [key for key in drawn if key_fault(key, 100) is None]
    cut = list(batches(PATTERN, askable, most_keys, 100))
    assert [key for batch in cut for key in batch.keys] == list(dict.fromkeys(askable))
    for batch in cut:
        block = batch.text.removesuffix(f"\n}} {BODY} }}").split("{\n", 1)[1]
        assert 1 <= len(batch.keys) <= most_keys
        assert len(block.encode()) <= 100


def test_a_batch_is_full_at_a_hundred_keys_or_64_kilobytes():
    def sizes(text: str) -> list[int]:
        keys = [(ox.Literal(f"{text}{number}"),) for number in range(250)]
        return [len(batch.keys) for batch in batches(PATTERN, keys)]

    assert sizes("") == [100, 100, 50]
    assert sizes("x" * 1000) == [64, 64, 64, 58]


def test_the_variable_of_the_place_is_none_of_the_clause():
    pattern = RemotePattern(E, "{ ?place <urn:p> ?place_ }", ("place",), ("place_",))
    assert place_variable(pattern) == "place__"
    text = batch_of(pattern, [(ox.Literal("a"),)]).text
    assert "VALUES (?place__ ?place) {" in text


def test_a_variable_that_is_none_is_refused():
    hostile = RemotePattern(E, BODY, ("k",), ("v } #",))
    with pytest.raises(ValueError, match="variable"):
        batch_of(hostile, [(ox.Literal("a"),)])


def test_a_page_is_ordered_by_keys_first():
    assert whole_text(PATTERN) == f"SELECT ?k ?v WHERE {BODY}"
    assert page_text(PATTERN, 10, 20) == (
        f"SELECT ?k ?v WHERE {BODY} ORDER BY ?k ?v LIMIT 10 OFFSET 20"
    )
    assert page_text(PATTERN, 10, 20, is_nested=True) == (
        f"SELECT ?k ?v WHERE {{ {{ SELECT ?k ?v WHERE {BODY} ORDER BY ?k ?v }} }}"
        " LIMIT 10 OFFSET 20"
    )
    for is_nested in (False, True):
        parse(page_text(RemotePattern(E, "{ }", (), ()), 1, 0, is_nested=is_nested))
