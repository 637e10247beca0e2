"""Query texts: read from files, parsed, and validated by the grammar, its notes and the rules."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rsp_engine.errors import Diagnostic, QueryFileError, QuerySemanticError, QuerySyntaxError, Span
from rsp_engine.grammar.parser import read
from rsp_engine.grammar.rules import RULES
from rsp_engine.grammar.scope import Scopes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.grammar.tree import QueryUnit

__all__ = ["LARGEST_QUERY", "Validation", "check", "checked", "parse", "read_query", "validate"]

LARGEST_QUERY = 2 * 1024 * 1024
"""The largest query file, in bytes: far more than a query needs, so a larger file is data."""


def read_query(path: str) -> str:
    """Return the text of a query file, or of standard input for `-`.

    Raise `QueryFileError` if the file cannot be read or is too large, and `QuerySyntaxError` if it
    is not UTF-8.
    """
    data = _read(path)
    if len(data) > LARGEST_QUERY:
        size = f"{LARGEST_QUERY // 1024 // 1024} MB"
        raise QueryFileError(
            f"it is larger than {size}", "a query this long is probably data", path
        )
    data = data.removeprefix(BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        place = len(data[: error.start].decode())
        message = f"the text is not UTF-8: byte 0x{data[error.start]:02x} is not valid here"
        hint = "save the file as UTF-8"
        wrong = Diagnostic("syntax", message, Span(place, place + 1), hint)
        raise QuerySyntaxError([wrong], text, path) from None


def _read(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read(LARGEST_QUERY + 1)
    file = Path(path)
    try:
        with file.open("rb") as stream:
            return stream.read(LARGEST_QUERY + 1)
    except FileNotFoundError:
        raise QueryFileError("there is no such file", "check the path", path) from None
    except IsADirectoryError:
        hint = f"name the files in it: {file / '*.rspql'}"
        raise QueryFileError("it is a folder, not a query", hint, path) from None
    except OSError as error:
        raise QueryFileError(f"it cannot be read: {error.strerror or error}", path=path) from None


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
