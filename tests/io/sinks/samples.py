"""Sample answers, and terms with characters that need escaping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode, Triple

from rsp_engine.io.sinks import FORMATS
from rsp_engine.model.answers import Answer, Boolean, Graph, Interval, Row, Solutions

if TYPE_CHECKING:
    from rsp_engine.model.terms.term import Term

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGER = NamedNode(f"{XSD}integer")

BOB = NamedNode(f"{EX}bob")
SEVEN = Literal("7", datatype=INTEGER)
BONJOUR = Literal("bon, jour", language="fr")
NODE = BlankNode("b0")

ROWS = (
    Row({"user": BOB, "count": SEVEN}, 1, 7.0),
    Row({"count": BONJOUR, "user": NODE}, 2, 0.1),
    Row({"count": Literal('say "hi"\r\n\té')}, 3, None),
)
UNRANKED = Solutions(("user", "count"), ROWS)
RANKED = Solutions(("user", "count"), ROWS, ranked=True)
GRAPH = Graph((Triple(NODE, BOB, NODE), Triple(BOB, BOB, Literal('a"\n\\u0041'))))


def answer(
    content: Solutions | Graph | Boolean, close: int = 5000, query: str = f"{EX}query"
) -> Answer:
    return Answer(query, Interval(close - 5000, close), content, {"triples": 3, "exact": True})


def one(term: Term) -> Answer:
    """Return an answer with one row of one term."""
    return answer(Solutions(("x",), (Row({"x": term}),)))


def written(format_name: str, *answers: Answer) -> str:
    writer = FORMATS[format_name].writer()
    return "".join(str(writer(answer)) for answer in answers)


def written_bytes(format_name: str, *answers: Answer) -> bytes:
    writer = FORMATS[format_name].writer()
    texts = [writer(answer) for answer in answers]
    return b"".join(text if isinstance(text, bytes) else text.encode() for text in texts)


def _is_iri(value: str) -> bool:
    try:
        return bool(NamedNode(value).value)
    except ValueError:
        return False


texts = st.text() | st.text("\\uU0041\"'\n\r\t }{<>&.#;,?@^_:\x00\x1f\x7f\x85\u2028\ufeff\ufffe")
iris = (
    (st.text("aé/?#&;'()*,:%20\U00010000\ue000.-_~=+@!$[]") | st.text(max_size=3))
    .map(f"{EX}a".__add__)
    .filter(_is_iri)
    .map(NamedNode)
)
# Oxigraph does not read two dots in a row in tsv.
blank_nodes = st.from_regex("[A-Za-z0-9_é\U00010000]([.]?[-A-Za-z0-9é·‿])*", fullmatch=True)
languages = st.sampled_from(["en", "en-GB", "zh-hant-tw", "x-private"])
directions = st.none() | st.sampled_from([BaseDirection("ltr"), BaseDirection("rtl")])
datatypes = st.sampled_from("string integer decimal double boolean dateTime".split()).map(
    lambda name: NamedNode(XSD + name)
)
numbers = (
    st.integers().map(str) | st.floats().map(str) | st.sampled_from(["true", "+.5", "1.", "1e"])
)
literals = (
    st.builds(Literal, texts)
    | st.builds(
        lambda *a: Literal(a[0], language=a[1], direction=a[2]), texts, languages, directions
    )
    | st.builds(lambda text, kind: Literal(text, datatype=kind), texts | numbers, datatypes | iris)
)
terms = iris | blank_nodes.map(BlankNode) | literals
