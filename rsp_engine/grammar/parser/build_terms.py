"""The builder of terms and paths from Lark's tree, with one method per rule of `rspql.lark`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rsp_engine.errors import Diagnostic
from rsp_engine.grammar.parser.escapes import undo_string_escapes
from rsp_engine.grammar.tree import (
    RDF_LANG_STRING,
    RDF_TYPE,
    BlankNode,
    Iri,
    Literal,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathRepeat,
    PathSequence,
    Var,
)
from rsp_engine.model.terms.xsd import XSD, XSD_STRING

if TYPE_CHECKING:
    from rsp_engine.errors import Span
    from rsp_engine.grammar.parser.names import Names

__all__ = ["BuildTerms", "Children"]

Children = list[Any]


class BuildTerms:
    """The builder of terms, variables and property paths."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.diagnostics: list[Diagnostic] = []

    def refuse(self, message: str, span: Span, hint: str | None = None) -> None:
        """Record an error that the grammar admits and SPARQL does not."""
        self.diagnostics.append(Diagnostic("syntax", message, span, hint))

    def var(self, span: Span, c: Children) -> Var:
        return Var(str(c[0][1:]), span=span)

    def iri(self, span: Span, c: Children) -> Iri:
        return self.names.iri(str(c[0]), span)

    def prefixed_name(self, span: Span, c: Children) -> Iri:
        return self.names.prefixed(str(c[0]), span)

    def a(self, span: Span, _: Children) -> Iri:
        return Iri(RDF_TYPE, span=span)

    def bnode(self, span: Span, c: Children) -> BlankNode:
        return BlankNode(str(c[0][2:]), span=span)

    def string(self, _: Span, c: Children) -> str:
        quote = 3 if c[0].type.startswith("STRING_LONG") else 1
        return undo_string_escapes(str(c[0][quote:-quote]))

    def language(self, _: Span, c: Children) -> str:
        return str(c[0][1:])

    def datatype(self, _: Span, c: Children) -> Iri:
        iri: Iri = c[0]
        return iri

    def rdf_literal(self, span: Span, c: Children) -> Literal:
        lexical, kind = c
        if isinstance(kind, str):
            return Literal(lexical, RDF_LANG_STRING, kind, span=span)
        return Literal(lexical, XSD_STRING if kind is None else kind.value, span=span)

    def number(self, span: Span, c: Children) -> Literal:
        kind = c[0].type.split("_")[0].lower()
        return Literal(str(c[0]), XSD + kind, span=span)

    signed_number = number

    def boolean(self, span: Span, c: Children) -> Literal:
        return Literal(str(c[0]).lower(), XSD + "boolean", span=span)

    def path_alternative(self, span: Span, c: Children) -> Path:
        return PathAlternative(tuple(c), span=span)

    def path_sequence(self, span: Span, c: Children) -> Path:
        return PathSequence(tuple(c), span=span)

    def path_inverse(self, span: Span, c: Children) -> PathInverse:
        return PathInverse(c[0], span=span)

    negated_inverse = path_inverse

    def path_modifier(self, _: Span, c: Children) -> str:
        return str(c[0])

    def path_repeat(self, span: Span, c: Children) -> PathRepeat:
        return PathRepeat(c[0], c[1], span=span)

    def path_negated(self, span: Span, c: Children) -> PathNegated:
        return PathNegated(tuple(c), span=span)
