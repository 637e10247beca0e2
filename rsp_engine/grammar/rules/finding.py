"""Findings: what a rule reports about a node of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.errors import Diagnostic
from rsp_engine.grammar.write import WriteTerms

if TYPE_CHECKING:
    from rsp_engine.grammar.tree import Iri, Node, QueryUnit

__all__ = ["Finding", "error", "short", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """An error, which rejects the query, or a warning about a probable mistake."""

    diagnostic: Diagnostic
    is_error: bool


def error(message: str, node: Node, hint: str | None = None) -> Finding:
    """Return an error at a node."""
    return Finding(Diagnostic("semantic", message, node.span, hint), is_error=True)


def warning(message: str, node: Node, hint: str | None = None) -> Finding:
    """Return a warning at a node."""
    return Finding(Diagnostic("semantic", message, node.span, hint), is_error=False)


def short(query: QueryUnit, iri: Iri) -> str:
    """Write an IRI with the prefixes of the query."""
    return WriteTerms(query.prefixes).term(iri)
