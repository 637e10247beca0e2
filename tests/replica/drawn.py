"""Terms, keys and solutions for Hypothesis to draw."""

from __future__ import annotations

import pyoxigraph as ox
from hypothesis import strategies as st

from rsp_engine.replica.pattern import Key, RemotePattern, RemoteSolution

XSD = "http://www.w3.org/2001/XMLSchema#"
PATTERN = RemotePattern(
    service="http://example.org/sparql",
    body="{ ?user <http://example.org/followers> ?n }",
    keys=("user",),
    variables=("n", "m"),
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['"', "\\", "\\u0041", "\n", "\r", "> . } #", "'''", "\x00", "\ufffe", "\U0001f600", "\x7f"]
)
iris = st.sampled_from(["urn:a", "http://example.org/é", "http://example.org/#x", "a:'()"]).map(
    ox.NamedNode
)
blank_nodes = st.sampled_from(["b", "0", "a-b", "a.b", "x:y", "é"]).map(ox.BlankNode)
literals = st.one_of(
    texts.map(ox.Literal),
    st.builds(ox.Literal, texts, language=st.sampled_from(["en", "de-AT"])),
    st.builds(ox.Literal, texts, datatype=iris),
    st.integers().map(ox.Literal),
    st.floats(allow_nan=False).map(ox.Literal),
    st.booleans().map(ox.Literal),
)
terms = st.one_of(iris, blank_nodes, literals)


def person(number: int) -> ox.NamedNode:
    """Return the IRI of a user."""
    return ox.NamedNode(f"http://example.org/user/{number}")


def user(number: int) -> Key:
    """Return a key."""
    return (person(number),)


def value(number: int) -> RemoteSolution:
    """Return a solution."""
    return {"n": ox.Literal(number)}


users = st.integers(0, 5).map(user)
bags = st.lists(st.integers(0, 2).map(value), max_size=2).map(tuple)
