"""The explanation of a plan as an SVG picture, laid out without Graphviz.

Each plan is laid out as a tree: a box is centred above its inputs, and an input of several boxes is
below the lowest of them. The same plan gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from rsp_engine.plan.explain.dot import FILLS, LINES
from rsp_engine.plan.explain.graph import plan_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.plan.explain.graph import Box, PlanPart
    from rsp_engine.plan.planner import QueryPlan

__all__ = ["explain_svg"]

_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_CHARACTER = 0.61
"""The width of a character as a fraction of the font size."""
_TITLE, _TEXT, _LINE = 12.5, 11, 15.5
_PAD, _GAP_X, _GAP_Y, _FRAME = 12, 22, 34, 20
_HEAD = 44
"""The height of the header with the name of the query."""


def explain_svg(plan: QueryPlan) -> str:
    """Return both plans side by side as an SVG document."""
    graph = plan_graph(plan)
    parts = [_layout(part) for part in graph.parts]
    width = sum(part.width for part in parts) + 3 * _FRAME
    height = max(part.height for part in parts) + _HEAD + _FRAME
    body: list[str] = []
    left = float(_FRAME)
    for part in parts:
        body += [f'<g transform="translate({left:.1f} {_HEAD})">', *_drawn(part), "</g>"]
        left += part.width + _FRAME
    title = f"query {graph.query}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title)}" '
            f'font-family="{_FONT}">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#5b6673"/></marker>'
            "</defs>",
            f'<rect width="{width:.0f}" height="{height:.0f}" rx="10" fill="#fbfcfd"/>',
            _text(_FRAME, 28, title, 16, bold=True),
            *body,
            "</svg>",
            "",
        ]
    )


@dataclass(slots=True)
class _PlacedBox:
    """A box with its size and position: `x` is its centre, `y` its top."""

    box: Box
    width: float
    height: float
    x: float = 0
    y: float = 0

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass(frozen=True, slots=True)
class _Layout:
    """A part of the plan with its boxes at their positions."""

    part: PlanPart
    placed: dict[str, _PlacedBox]
    width: float
    height: float


def _layout(part: PlanPart) -> _Layout:
    placed = {box.name: _PlacedBox(box, *_size(box)) for box in part.boxes}
    below: dict[str, list[str]] = {name: [] for name in placed}
    above: dict[str, list[str]] = {name: [] for name in placed}
    for arrow in part.arrows:
        if not above[arrow.start]:
            below[arrow.end].append(arrow.start)
        above[arrow.start].append(arrow.end)

    def wide(name: str) -> float:
        inner = sum(wide(child) for child in below[name]) + _GAP_X * (len(below[name]) - 1)
        return max(placed[name].width, inner)

    def place(name: str, left: float) -> None:
        whole = wide(name)
        placed[name].x = left + whole / 2
        inner = sum(wide(child) for child in below[name]) + _GAP_X * (len(below[name]) - 1)
        at = left + (whole - inner) / 2
        for child in below[name]:
            place(child, at)
            at += wide(child) + _GAP_X

    root = part.boxes[0].name
    place(root, _FRAME)
    tops: dict[str, float] = {}

    def top(name: str) -> float:
        if name not in tops:
            ends = (top(end) + placed[end].height + _GAP_Y for end in above[name])
            tops[name] = max(ends, default=42.0)
        return tops[name]

    for name, each in placed.items():
        each.y = top(name)
    width = wide(root) + 2 * _FRAME
    return _Layout(part, placed, width, max(p.bottom for p in placed.values()) + _FRAME)


def _size(box: Box) -> tuple[float, float]:
    longest = max((len(line) for line in box.lines), default=0) * _TEXT
    width = max(len(box.title) * _TITLE, longest) * _CHARACTER + 2 * _PAD
    return width, _LINE * (1 + len(box.lines)) + 2 * _PAD - 4 + (4 if box.lines else 0)


def _drawn(layout: _Layout) -> Iterator[str]:
    yield (
        f'<rect width="{layout.width:.1f}" height="{layout.height:.1f}" rx="10" fill="#ffffff" '
        'stroke="#d5dbe1"/>'
    )
    yield _text(_FRAME, 26, layout.part.title, 12.5, colour="#5b6673")
    for arrow in layout.part.arrows:
        yield _arrow(layout.placed[arrow.start], layout.placed[arrow.end])
    for placed in layout.placed.values():
        yield from _box(placed)


def _arrow(start: _PlacedBox, end: _PlacedBox) -> str:
    """Draw an arrow from the top of one box to the nearest point of the bottom of another."""
    room = end.width / 2 - 14
    to_x = min(max(start.x, end.x - room), end.x + room)
    to_y = end.bottom + 1
    bend = (start.y - to_y) * 0.5
    path = (
        f"M{start.x:.1f} {start.y:.1f}C{start.x:.1f} {start.y - bend:.1f} "
        f"{to_x:.1f} {to_y + bend:.1f} {to_x:.1f} {to_y:.1f}"
    )
    return f'<path d="{path}" fill="none" stroke="#5b6673" marker-end="url(#tip)"/>'


def _box(placed: _PlacedBox) -> Iterator[str]:
    box, left = placed.box, placed.x - placed.width / 2
    yield (
        f'<rect x="{left:.1f}" y="{placed.y:.1f}" width="{placed.width:.1f}" '
        f'height="{placed.height:.1f}" rx="7" fill="{FILLS[box.kind]}" '
        f'stroke="{LINES[box.kind]}" stroke-width="1.3"/>'
    )
    at = placed.y + _PAD + 9
    if not box.lines:
        yield _text(placed.x, at, box.title, _TITLE, bold=True, middle=True)
        return
    yield _text(left + _PAD, at, box.title, _TITLE, bold=True)
    for number, line in enumerate(box.lines, 1):
        yield _text(left + _PAD, at + 3 + number * _LINE, line, _TEXT, colour="#333d47")


def _text(  # noqa: PLR0913 - the attributes of SVG text
    x: float,
    y: float,
    text: str,
    size: float,
    *,
    colour: str = "#1b232b",
    bold: bool = False,
    middle: bool = False,
) -> str:
    weight = ' font-weight="600"' if bold else ""
    anchor = ' text-anchor="middle"' if middle else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"{weight}{anchor} '
        f'xml:space="preserve">{escape(text)}</text>'
    )
