"""A picture of a run: which products led, window by window, and when they were maintained."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.model.answers import Solutions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rsp_engine.model.answers import Answer

WIDTH, ROW, LEFT, RIGHT, TOP = 1000, 44, 70, 40, 58
# Dark enough for white text, and of different hues.
COLOURS = "#0072b2 #b34700 #007a57 #a04a7f #96650a #2f7fae #6b5020 #4b6a88".split()


class Spot(NamedTuple):
    """A product in the answer of a window."""

    column: int
    rank: int
    maintained: str


def draw(answers: Sequence[Answer], path: Path) -> None:
    """Write the ranks of products over time as SVG."""
    found: dict[str, list[Spot]] = {}
    deepest = 1
    for column, answer in enumerate(answers):
        rows = answer.content.rows if isinstance(answer.content, Solutions) else ()
        for rank, row in enumerate(rows, start=1):
            name = row.bindings["product"].value.rpartition("/")[2]
            date = row.bindings["lastMaintenance"].value
            found.setdefault(name, []).append(Spot(column, rank, date))
            deepest = max(deepest, rank)
    height = TOP + deepest * ROW + 24
    step = (WIDTH - LEFT - RIGHT) / max(1, len(answers) - 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="20" y="26" font-size="16" font-weight="bold">Products at risk: least recently'
        " maintained, on the machines that shake most</text>",
    ]
    first = answers[0].window.close if answers else 0
    for column, answer in enumerate(answers):
        x, seconds = LEFT + column * step, (answer.window.close - first) // 1000
        parts.append(
            f'<text x="{x:.0f}" y="48" text-anchor="middle" fill="#666">{seconds} s</text>'
        )
    ranks = range(1, deepest + 1)
    parts += [f'<text x="22" y="{_y(rank) + 5}" fill="#666">{rank}</text>' for rank in ranks]
    for number, (name, spots) in enumerate(found.items()):
        parts += _line(name, spots, COLOURS[number % len(COLOURS)], step)
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def _line(name: str, spots: Sequence[Spot], colour: str, step: float) -> list[str]:
    parts = []
    for one, other in pairwise(spots):
        if other.column == one.column + 1:
            (x, y), (to, down) = _place(one, step), _place(other, step)
            middle = (x + to) / 2
            way = f"M{x:.0f} {y} C{middle:.0f} {y} {middle:.0f} {down} {to:.0f} {down}"
            parts.append(f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="5"/>')
    for spot in spots:
        x, y = _place(spot, step)
        box = f'x="{x - 31:.0f}" y="{y - 15}" width="62" height="30" rx="6"'
        parts.append(f'<rect {box} fill="{colour}"/>')
        for line, (text, size) in enumerate(((name, 10.5), (spot.maintained[2:], 9))):
            where = f'x="{x:.0f}" y="{y - 2 + 12 * line}" font-size="{size}"'
            parts.append(f'<text {where} text-anchor="middle" fill="#fff">{escape(text)}</text>')
    return parts


def _place(spot: Spot, step: float) -> tuple[float, int]:
    return LEFT + spot.column * step, _y(spot.rank)


def _y(rank: int) -> int:
    return TOP + rank * ROW - ROW // 2
