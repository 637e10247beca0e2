"""Validation of RSP-QL text: syntax, the notes of the SPARQL grammar, and the rules of RSP-QL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.errors import Diagnostic, QuerySemanticError, QuerySyntaxError
from rsp_engine.grammar.parser import read
from rsp_engine.grammar.rules import RULES
from rsp_engine.grammar.scope import Scopes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.grammar.tree import QueryUnit

__all__ = ["Validation", "check", "checked", "parse", "validate"]


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of a validation. `query` is `None` only if the text has syntax errors."""

    query: QueryUnit | None
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...] = ()


def parse(text: str, source: str = "<query>") -> QueryUnit:
    """Return the syntax tree of an RSP-QL text, or raise `QuerySyntaxError`.

    >>> parse("ASK { }").form
    AskForm(dataset=(), where=GroupPattern(elements=()), modifiers=Modifiers(group_by=(), ...
    """
    query, diagnostics = _syntax(text)
    if query is None or diagnostics:
        raise QuerySyntaxError(diagnostics, text, source)
    return query


def validate(text: str) -> Validation:
    """Check a text against the grammar and its notes and, if it parses, the rules of RSP-QL.

    >>> [warning.message for warning in validate("ASK { ?s ?p ?o }").warnings]
    ['the query has no window, so it reads no stream']
    """
    query, diagnostics = _syntax(text)
    if query is None or diagnostics:
        return Validation(None, tuple(diagnostics))
    findings = [finding for rule in RULES for finding in rule(query)]
    return Validation(
        query,
        tuple(_sorted(f.diagnostic for f in findings if f.is_error)),
        tuple(_sorted(f.diagnostic for f in findings if not f.is_error)),
    )


def check(text: str, source: str = "<query>") -> QueryUnit:
    """Return the syntax tree of a valid text.

    Raise `QuerySyntaxError` if it does not parse, `QuerySemanticError` if it breaks a rule.
    """
    return checked(text, source)[0]


def checked(text: str, source: str = "<query>") -> tuple[QueryUnit, tuple[Diagnostic, ...]]:
    """Return the syntax tree of a valid text, and its warnings; raise as `check` does."""
    result = validate(text)
    if result.query is None:
        raise QuerySyntaxError(result.errors, text, source)
    if result.errors:
        raise QuerySemanticError(result.errors, text, source)
    return result.query, result.warnings


def _syntax(text: str) -> tuple[QueryUnit | None, list[Diagnostic]]:
    query, diagnostics = read(text)
    if query is not None:
        diagnostics += Scopes(query).diagnostics
    return query, _sorted(diagnostics)


def _sorted(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    return sorted(diagnostics, key=lambda d: (d.span.start, d.span.end))
