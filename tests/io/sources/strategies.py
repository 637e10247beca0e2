"""Random elements: any text in their literals, any shape of term."""

from __future__ import annotations

import pyoxigraph as ox
from hypothesis import strategies as st

from tests.io.sources.reading import EX

XSD = "http://www.w3.org/2001/XMLSchema#"

# Texts with many characters that delimit terms and statements.
texts = st.text(
    st.one_of(
        st.sampled_from("\"'\\{}<>.#@:;,|\n\r\t ab7é\u2028😀"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=12,
)
parts = st.text("ab0./:-é", max_size=5)
names = st.builds(
    lambda path, end: ox.NamedNode(EX + path + end), parts, st.just("") | parts.map("#{}".format)
)
labels = st.builds(ox.BlankNode, st.text("ab0", min_size=1, max_size=3))
literals = st.one_of(
    st.builds(ox.Literal, texts),
    st.builds(lambda text: ox.Literal(text, language="en-gb"), texts),
    st.builds(lambda n: ox.Literal(str(n), datatype=ox.NamedNode(XSD + "integer")), st.integers()),
    st.just(ox.Literal(".5", datatype=ox.NamedNode(XSD + "decimal"))),
)
triples = st.builds(ox.Triple, names | labels, names, names | labels | literals)
graphs = st.lists(triples, min_size=1, max_size=4, unique=True).map(tuple)
timestamps = st.integers(0, 2**63 - 1)
streams = st.lists(st.tuples(timestamps, graphs), max_size=6)
