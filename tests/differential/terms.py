"""RDF terms, and literals in the form in which the engine keeps them: by value.

`"01"^^xsd:integer` becomes `"1"^^xsd:integer`, and so does an integer of a derived type. A literal
that is ill-formed, or out of the range of its type, does not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tests.differential import moments, numeric

XSD = "http://www.w3.org/2001/XMLSchema#"
LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
EX = "http://example.org/"


@dataclass(frozen=True, slots=True)
class Iri:
    value: str


@dataclass(frozen=True, slots=True)
class Blank:
    label: str


@dataclass(frozen=True, slots=True)
class Literal:
    text: str
    datatype: str = XSD + "string"
    language: str = ""


Term = Iri | Blank | Literal
Triple = tuple[Term, Iri, Term]
Value = numeric.Number | moments.Moment | moments.Duration | bool
"""What a well-formed literal stands for, unless it is a text or of a type that is not known."""


def ex(name: str) -> Iri:
    return Iri(EX + name)


def typed(text: str, kind: str) -> Literal:
    """Return a literal of a type of XML Schema, in its canonical form."""
    return canonical(Literal(text, XSD + kind))


def tagged(text: str, language: str) -> Literal:
    return Literal(text, LANG_STRING, language)


TRUE, FALSE = Literal("true", XSD + "boolean"), Literal("false", XSD + "boolean")


@cache
def value_of(literal: Literal) -> Value | None:
    """Return the value of a literal; nothing of a text, of an unknown type, or if ill-formed."""
    kind = literal.datatype.removeprefix(XSD)
    if kind == literal.datatype:
        return None
    if kind == "boolean":
        return {"true": True, "1": True, "false": False, "0": False}.get(literal.text)
    return (
        numeric.read(literal.text, kind)
        or moments.read(literal.text, kind)
        or moments.read_duration(literal.text, kind)
    )


def literal_of(value: Value) -> Literal:
    """Return the canonical literal of a value."""
    match value:
        case bool():
            return TRUE if value else FALSE
        case _:
            return Literal(value.text(), XSD + value.kind)


def canonical(literal: Literal) -> Literal:
    value = value_of(literal)
    return literal if value is None else literal_of(value)


def number_of(term: Term) -> numeric.Number | None:
    value = value_of(term) if isinstance(term, Literal) else None
    return value if isinstance(value, numeric.Number) else None


def is_text(term: Term) -> bool:
    return isinstance(term, Literal) and term.datatype in {XSD + "string", LANG_STRING}


def written(term: Term | None) -> str:
    """Return a term as N-Triples; nothing for no term."""
    match term:
        case None:
            return ""
        case Iri(value):
            return f"<{value}>"
        case Blank(label):
            return f"_:{label}"
        case Literal(text, datatype, language):
            quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            if language:
                return f'"{quoted}"@{language}'
            return f'"{quoted}"' if datatype == XSD + "string" else f'"{quoted}"^^<{datatype}>'
