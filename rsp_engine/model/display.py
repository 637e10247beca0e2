"""The display of numbers, times and terms to people: short, and safe for a terminal."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, Literal, NamedNode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

    from rsp_engine.model.answers import Interval

__all__ = [
    "TermFormatter",
    "format_age",
    "format_instant",
    "format_number",
    "format_size",
    "format_window",
    "is_measure",
    "printable",
]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBERS = frozenset(
    _XSD + name
    for name in (
        "integer", "decimal", "double", "float", "int", "long", "short", "byte",
        "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger",
        "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
    )
)  # fmt: skip
_TIMES = frozenset(
    _XSD + name for name in ("dateTime", "date", "time", "duration", "dayTimeDuration")
)
_LONGEST = 60
"""The most characters of a text."""
_YEAR_2000 = 946_684_800_000
"""Earlier times count from the start of a recording, and are shown in seconds."""


def printable(text: str, longest: int = _LONGEST) -> str:
    r"""Return a text without control characters, cut to a limited length.

    >>> printable("a\x1b[2Jb")
    'a�[2Jb'
    """
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c)[0] == "C" else c for c in text
    )


def is_measure(term: NamedNode | BlankNode | Literal) -> bool:
    """Return whether a term is a number or a time: it says how much or when, not who."""
    return isinstance(term, Literal) and term.datatype.value in _NUMBERS | _TIMES


class TermFormatter:
    """A formatter of terms: as in the query, and numbers with a few digits.

    >>> from pyoxigraph import Literal, NamedNode
    >>> terms = TermFormatter({"": "http://example.org/"})
    >>> terms(NamedNode("http://example.org/user/ann")), terms(NamedNode("http://e.org/a"))
    (':user/ann', 'http://e.org/a')
    >>> terms(Literal(1234567)), terms(Literal(3.14159265)), terms(Literal("hi", language="en"))
    ('1,234,567', '3.14159', 'hi')
    """

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        known = sorted(prefixes.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        self._namespaces = [(iri, f"{prefix}:") for prefix, iri in known if iri]

    def __call__(self, term: NamedNode | BlankNode | Literal) -> str:
        """Return the short text of a term."""
        if isinstance(term, NamedNode):
            return self.iri(term.value)
        if isinstance(term, BlankNode):
            return printable(f"_:{term.value}")
        return printable(
            format_number(term.value) if term.datatype.value in _NUMBERS else term.value
        )

    def iri(self, value: str) -> str:
        """Return an IRI with the longest prefix that fits, even if the rest is no local name."""
        for namespace, prefix in self._namespaces:
            if value.startswith(namespace):
                return printable(prefix + value[len(namespace) :])
        return printable(value)


def format_number(text: str) -> str:
    """Return an integer with all digits, and other numbers with six."""
    try:
        return f"{int(text):,}"
    except ValueError:
        pass
    try:
        return f"{float(text):,.6g}"
    except ValueError:
        return text


def format_age(milliseconds: int) -> str:
    """Return the text of an age.

    >>> [format_age(ms) for ms in (0, 850, 45_000, 125_000, 11_520_000, 200_000_000)]
    ['fresh', '850 ms', '45 s', '2 m 05 s', '3 h 12 m', '2 d 7 h']
    """
    if milliseconds <= 0:
        return "fresh"
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    seconds = milliseconds // 1_000
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} m {seconds:02} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02} m"
    return f"{hours // 24} d {hours % 24} h"


def format_instant(milliseconds: float, zone: tzinfo | None = UTC) -> str:
    """Return the text of an instant of event time, in a time zone; None is that of this computer.

    >>> format_instant(160_000), format_instant(1_709_283_550_000), format_instant(float("inf"))
    ('160 s', '2024-03-01 08:59:10', 'the end')
    """
    if milliseconds == inf:
        return "the end"
    if milliseconds == -inf:
        return "none yet"
    if abs(milliseconds) < _YEAR_2000:
        return f"{milliseconds / 1000:,g} s"
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds / 1000:,g} s"
    return when.strftime("%Y-%m-%d %H:%M:%S")


def format_window(window: Interval, zone: tzinfo | None = UTC) -> str:
    """Return the text of a window; if both edges have the same date, it is shown once.

    >>> from rsp_engine.model.answers import Interval
    >>> format_window(Interval(1_709_283_550_000, 1_709_283_610_000))
    '2024-03-01 08:59:10 – 09:00:10'
    """
    begin, end = format_instant(window.open, zone), format_instant(window.close, zone)
    day = len("2024-03-01 ")
    return f"{begin} – {end[day:] if '-' in end and begin[:day] == end[:day] else end}"


def format_size(amount: int) -> str:
    """Return the text of a number of bytes.

    >>> format_size(900), format_size(12_345), format_size(3_400_000_000)
    ('900 B', '12.3 kB', '3.4 GB')
    """
    value = float(amount)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("the last unit takes everything")
