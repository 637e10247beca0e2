"""Drawings of windows above a line of time, as case files have them.

    t/s   0    1    2    10   12   20
               a1   b2        a3
    W0    (--------------]             a1 b2
    W1                   (---------]   a3

A line that begins with `t/` and a unit is a ruler of times. A window stands below it, from bracket
to bracket; a bracket means the nearest time of the ruler. All else is for the reader. A second
ruler begins another drawing, of the same windows or of others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rsp_engine.errors import CaseError
from rsp_engine.model.quantities import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.testing.answer_table import AnswerRecord

    Edges = tuple[int, int]

__all__ = ["WindowDrawing"]

_RULER = re.compile(r"t/([a-z]+)\s+(?=[-\d.])")
_UNITS = {"min": "m"}
_WINDOW = re.compile(r"\S*\s+([(\[])-+([)\]])(?:\s|$)")


class WindowDrawing:
    r"""The windows that a drawing shows.

    >>> drawing = WindowDrawing("t/s  0   5  10\nW0   (------]")
    >>> drawing.windows == {(0, 10_000)}
    True
    >>> print(drawing.compare([{"window": {"open": 10_000, "close": 20_000}}]))
    windows: answered, and not drawn
    + 10000 to 20000
    """

    def __init__(self, text: str) -> None:
        """Read a drawing.

        Raises:
            CaseError: If it has no ruler.
        """
        self.windows = frozenset(_windows(text))

    def compare(self, records: Sequence[AnswerRecord]) -> str:
        """Return the windows of answers that are not drawn; nothing if all are."""
        answered = {(r["window"]["open"], r["window"]["close"]) for r in records}
        missing = sorted(answered - self.windows)
        lines = [f"+ {begin} to {end}" for begin, end in missing]
        return "\n".join(["windows: answered, and not drawn", *lines]) if lines else ""


def _windows(text: str) -> Iterator[Edges]:
    ruler: dict[int, int] = {}
    for line in text.splitlines() or [""]:
        if match := _RULER.match(line):
            ruler = _ruler(line, match)
        elif not ruler:
            raise CaseError(
                "the drawing of the windows has no times",
                "begin it with a ruler, such as `t/s  0  10  20`",
            )
        elif match := _WINDOW.match(line):
            yield _time(ruler, match.start(1)), _time(ruler, match.start(2))


def _ruler(line: str, head: re.Match[str]) -> dict[int, int]:
    """Return the times of a ruler by the columns at which they begin."""
    unit = _UNITS.get(head[1], head[1])
    try:
        return {
            word.start(): parse_duration(f"{word[0]}{unit}")
            for word in re.finditer(r"\S+", line)
            if word.start() >= head.end()
        }
    except ValueError:
        raise CaseError(
            f"`{line.strip()}` is no ruler of times", "write numbers below a unit: `t/s  0  10  20`"
        ) from None


def _time(ruler: dict[int, int], column: int) -> int:
    return ruler[min(ruler, key=lambda begin: abs(begin - column))]
