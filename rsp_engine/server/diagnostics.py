"""Diagnostics as plain data, for editors: places count UTF-16 code units, as JavaScript does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from rsp_engine.errors import position

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.errors import Diagnostic

__all__ = ["diagnostics_as_data"]

_MEANT = re.compile(r"did you mean (\S+)\?(?: |$)")


def diagnostics_as_data(
    diagnostics: Iterable[Diagnostic], text: str, severity: Literal["error", "warning"]
) -> list[dict[str, Any]]:
    """Return diagnostics of a text as plain data."""
    return [_as_data(each, text, severity) for each in diagnostics]


def _as_data(diagnostic: Diagnostic, text: str, severity: str) -> dict[str, Any]:
    span = diagnostic.span
    place = position(text, span.start)
    start, end = (_utf16(text, offset) for offset in (span.start, span.end))
    return {
        "severity": severity,
        "kind": diagnostic.kind,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "line": place.line,
        "column": place.column,
        "start": start,
        "end": end,
        "fix": _fix(diagnostic, text, start, end),
    }


def _utf16(text: str, offset: int) -> int:
    return len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2


def _fix(diagnostic: Diagnostic, text: str, start: int, end: int) -> dict[str, Any] | None:
    """Return the replacement that the hint names for the span, if it names one."""
    meant = _MEANT.match(diagnostic.hint or "")
    marked = text[diagnostic.span.start : diagnostic.span.end]
    if meant is None or not marked or any(map(str.isspace, marked)):
        return None
    return {"start": start, "end": end, "text": meant.group(1).strip("`")}
