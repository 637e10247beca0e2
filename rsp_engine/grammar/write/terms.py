"""Terms and paths as RSP-QL text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from rsp_engine.grammar.tree import (
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
from rsp_engine.model.terms.rdf_text import blank_node_text, iri_text, literal_text, variable_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["WriteTerms"]

# Local names that need no escapes.
_EASY_LOCAL = re.compile(r"([A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?)?")
_ALTERNATIVE, _SEQUENCE, _STEP, _ELEMENT, _PRIMARY = range(5)


class WriteTerms:
    """The writer of terms and paths; it shortens IRIs with the prefixes of the query."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        longest_first = sorted(prefixes.items(), key=lambda item: (-len(item[1]), item[0]))
        self._namespaces = [(iri, name) for name, iri in longest_first if iri]

    def term(self, term: Var | Iri | Literal | BlankNode) -> str:
        """Write a term or a variable."""
        match term:
            case Var(name):
                return variable_text(name)
            case Iri(value):
                return self.iri(value)
            case Literal(lexical, datatype, language):
                return self._literal(lexical, datatype, language)
            case BlankNode(label):
                return blank_node_text(label)
            case _ as unreachable:
                assert_never(unreachable)

    def iri(self, value: str) -> str:
        """Write an IRI, as a prefixed name if that needs no escapes."""
        for namespace, prefix in self._namespaces:
            if value.startswith(namespace) and _EASY_LOCAL.fullmatch(value, len(namespace)):
                return f"{prefix}:{value[len(namespace) :]}"
        return iri_text(value)

    def _literal(self, lexical: str, datatype: str, language: str | None) -> str:
        text = literal_text(lexical, datatype, language)
        quoted, marker, iri = text.rpartition('"^^')
        return (
            f"{quoted}{marker}{self.iri(datatype)}"
            if marker and iri == iri_text(datatype)
            else text
        )

    def verb(self, verb: Var | Path) -> str:
        """Write the verb of a triple pattern: a variable or a path."""
        return self.term(verb) if isinstance(verb, Var) else self.path(verb, _ALTERNATIVE)

    def path(self, path: Path, least: int) -> str:
        """Write a path, in brackets if its precedence is less than `least`."""
        binding, text = self._bound_path(path)
        return text if binding >= least else f"({text})"

    def _bound_path(self, path: Path) -> tuple[int, str]:
        match path:
            case Iri(value):
                return _PRIMARY, "a" if value == RDF_TYPE else self.iri(value)
            case PathAlternative(options):
                return _ALTERNATIVE, " | ".join(self.path(p, _SEQUENCE) for p in options)
            case PathSequence(steps):
                return _SEQUENCE, " / ".join(self.path(p, _STEP) for p in steps)
            case PathInverse(inner):
                return _STEP, f"^{self.path(inner, _ELEMENT)}"
            case PathRepeat(inner, modifier):
                return _ELEMENT, f"{self.path(inner, _PRIMARY)}{modifier}"
            case PathNegated(excluded):
                return _PRIMARY, f"!({' | '.join(self.path(p, _STEP) for p in excluded)})"
            case _ as unreachable:
                assert_never(unreachable)
