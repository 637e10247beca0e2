"""What a rule of the language says about a place in a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.errors import Diagnostic
from rsp_engine.grammar.write.terms import WriteTerms

if TYPE_CHECKING:
    from rsp_engine.grammar.tree import Iri, Node, QueryUnit

__all__ = ["Finding", "error", "short", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """An error means that the query is refused; a warning, that it may not say what is meant."""

    diagnostic: Diagnostic
    is_error: bool


def error(message: str, node: Node, hint: str | None = None) -> Finding:
    """Refuse the query because of a node."""
    return Finding(Diagnostic("semantic", message, node.span, hint), is_error=True)


def warning(message: str, node: Node, hint: str | None = None) -> Finding:
    """Warn of a node."""
    return Finding(Diagnostic("semantic", message, node.span, hint), is_error=False)


def short(query: QueryUnit, iri: Iri) -> str:
    """Write an IRI as the writer of the query would."""
    return WriteTerms(query.prefixes).term(iri)
