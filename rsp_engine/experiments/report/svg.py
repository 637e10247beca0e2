"""Panels as SVG: small enough for a phone, sharp in print, and the same bytes for the same numbers.

Colours can be told apart by colour-blind readers (Okabe, Ito: Color universal design, 2008), and
every policy has a mark of its own as well.
"""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING, NamedTuple, assert_never

from rsp_engine.experiments.report.figures import Bars, Curves, Lines, Panel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.experiments.report.figures import Labels
    from rsp_engine.experiments.report.measured import Median

__all__ = ["STYLES", "Style", "draw", "in_legend_order", "mark", "nice_ticks", "style_of"]

WIDTH, HEIGHT = 380, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 26, 40


class Style(NamedTuple):
    """How a policy is drawn."""

    colour: str
    mark: str
    dashes: str = ""
    width: float = 1.4


STYLES = {
    "AT-VOI": Style("#7b3294", "circle", width=2.6),
    "AT-VOI+signal": Style("#7b3294", "square", "6 3", width=2.6),
    "WSJ-VOI": Style("#c2a5cf", "circle"),
    "AT-TSM": Style("#d55e00", "circle", width=2.6),
    "AT-BSM": Style("#0072b2", "square", width=2.6),
    "AT-LRU": Style("#56b4e9", "triangle"),
    "AT-WBM": Style("#cc79a7", "diamond"),
    "AT-RND": Style("#8c6d31", "cross"),
    "WSJ-LRU": Style("#009e73", "triangle"),
    "WSJ-WBM": Style("#e69f00", "diamond"),
    "WSJ-RND": Style("#999999", "cross"),
    "AT-ASM": Style("#222222", "none", "6 3"),
    "EXACT": Style("#222222", "none", "1 2"),
    "WST": Style("#222222", "none", "2 3"),
}


def style_of(name: str) -> Style:
    """Return how a policy is drawn; one's own has a style as well."""
    return STYLES.get(name, Style("#4b6a88", "circle"))


def in_legend_order(names: Iterable[str]) -> list[str]:
    """Return names as a legend has them: the proposed policies first, the bounds last."""
    known = list(STYLES)
    return sorted(names, key=lambda name: known.index(name) if name in known else len(known))


class Axis(NamedTuple):
    """From values to places on the page."""

    least: float
    largest: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        part = (value - self.least) / ((self.largest - self.least) or 1)
        return self.start + part * (self.end - self.start)


def nice_ticks(least: float, largest: float, about: int = 5) -> list[float]:
    """Return round numbers that span a range.

    >>> nice_ticks(93.1, 150)
    [80.0, 100.0, 120.0, 140.0, 160.0]
    >>> nice_ticks(0, 0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if largest <= least:
        largest = least + 1
    rough = (largest - least) / about
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
    return [round(step * i, 9) for i in range(floor(least / step), ceil(largest / step) + 1)]


def draw(panel: Panel) -> str:
    """Return a panel as an SVG element."""
    match panel:
        case Lines():
            body = _lines(panel)
        case Curves():
            body = _curves(panel)
        case Bars():
            body = _bars(panel)
        case _ as unreachable:
            assert_never(unreachable)
    title = escape(f"{panel.labels.title}: {panel.labels.y} by {panel.labels.x}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{title}" font-family="system-ui, sans-serif" font-size="11">'
        + "".join(body)
        + "</svg>"
    )


def _text(x: float, y: float, text: str, *more: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {" ".join(more)}>{escape(text)}</text>'


def _frame(labels: Labels, ticks: Sequence[float], y: Axis) -> Iterator[str]:
    """Yield the title, the names of the axes, and horizontal lines with their numbers."""
    yield _text(_LEFT, 15, labels.title, 'font-weight="600"', 'font-size="12.5"')
    for tick in ticks:
        at = y(tick)
        yield (
            f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" '
            'stroke="#dddddd" stroke-width="1"/>'
        )
        yield _text(_LEFT - 5, at + 4, f"{tick:g}", 'text-anchor="end"', 'fill="#555555"')
    middle = (_TOP + HEIGHT - _BOTTOM) / 2
    turned = f'transform="rotate(-90 11 {middle:.1f})"'
    yield _text(11, middle, labels.y, 'text-anchor="middle"', 'fill="#333333"', turned)
    centre = (_LEFT + WIDTH - _RIGHT) / 2
    yield _text(centre, HEIGHT - 6, labels.x, 'text-anchor="middle"', 'fill="#333333"')


def _tick(x: float, text: str) -> str:
    return _text(x, HEIGHT - _BOTTOM + 15, text, 'text-anchor="middle"', 'fill="#555555"')


def _vertical(least: float, largest: float, most: float | None = None) -> tuple[list[float], Axis]:
    """Return ticks and the vertical axis; no tick is beyond the most that can be."""
    ticks = nice_ticks(least, largest)
    if most is not None:
        ticks = [tick for tick in ticks if tick <= most]
    top = ticks[-1] if most is None else max(most, ticks[-1])
    return ticks, Axis(ticks[0], top, HEIGHT - _BOTTOM, _TOP)


def _lines(panel: Lines) -> Iterator[str]:
    every = [median for line in panel.lines.values() for median in line]
    ticks, y = _vertical(min(m.least for m in every), panel.most, panel.most)
    yield from _frame(panel.labels, ticks, y)
    last = max(len(panel.ticks) - 1, 1)
    x = Axis(-0.35, last + 0.35, _LEFT, WIDTH - _RIGHT)
    for place, tick in enumerate(panel.ticks):
        yield _tick(x(place), tick)
    # Those that matter most come last, so that nothing covers them; each a little to the side.
    names = sorted(panel.lines, key=lambda name: style_of(name).width)
    for order, name in enumerate(names):
        shift = (order - (len(names) - 1) / 2) * 1.0
        places = [x(place) + shift for place in range(len(panel.ticks))]
        yield _line(name, places, panel.lines[name], y)


def _line(name: str, places: Sequence[float], line: Sequence[Median], y: Axis) -> str:
    style = style_of(name)
    bars = "".join(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y(m.least):.1f}" y2="{y(m.largest):.1f}" '
        f'stroke="{style.colour}" stroke-opacity="0.55" stroke-width="1"/>'
        for x, m in zip(places, line, strict=True)
    )
    points = zip(places, (y(m.value) for m in line), strict=True)
    marks = "".join(mark(style, x, y(m.value)) for x, m in zip(places, line, strict=True))
    return f"<g><title>{escape(name)}</title>{bars}{_path(style, points)}{marks}</g>"


def _path(style: Style, points: Iterable[tuple[float, float]]) -> str:
    at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{style.dashes}"' if style.dashes else ""
    return (
        f'<polyline points="{at}" fill="none" stroke="{style.colour}" '
        f'stroke-width="{style.width}" stroke-linejoin="round"{dashes}/>'
    )


def mark(style: Style, x: float, y: float) -> str:
    """Return the mark of a policy at a place."""
    r = 3.4 if style.width > 2 else 2.9
    fill = f'fill="{style.colour}"'
    match style.mark:
        case "circle":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" {fill}/>'
        case "square":
            side = f'width="{2 * r - 0.6:.1f}" height="{2 * r - 0.6:.1f}"'
            return f'<rect x="{x - r + 0.3:.1f}" y="{y - r + 0.3:.1f}" {side} {fill}/>'
        case "triangle":
            at = [(x, y - r), (x + r, y + r * 0.8), (x - r, y + r * 0.8)]
        case "diamond":
            at = [(x, y - r), (x + r, y), (x, y + r), (x - r, y)]
        case "cross":
            return (
                f'<path d="M{x - 2.5:.1f} {y - 2.5:.1f}l5 5m0-5l-5 5" stroke="{style.colour}" '
                'stroke-width="1.6" fill="none"/>'
            )
        case _:
            return ""
    return f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in at)}" {fill}/>'


def _curves(panel: Curves) -> Iterator[str]:
    largest = max(value for curve in panel.curves.values() for value in curve)
    ticks, y = _vertical(0, largest)
    yield from _frame(panel.labels, ticks, y)
    count = max(len(curve) for curve in panel.curves.values())
    x = Axis(0, count, _LEFT, WIDTH - _RIGHT)
    for tick in nice_ticks(0, count):
        if tick.is_integer() and tick <= count:
            yield _tick(x(tick), f"{tick:g}")
    for name in sorted(panel.curves, key=lambda name: style_of(name).width):
        style, curve = style_of(name), panel.curves[name]
        points = [(x(place), y(value)) for place, value in enumerate(curve, 1)]
        marked = range(len(curve) // 10, len(curve), max(len(curve) // 5, 1))
        marks = "".join(mark(style, *points[place]) for place in marked)
        yield f"<g><title>{escape(name)}</title>{_path(style, points)}{marks}</g>"


def _bars(panel: Bars) -> Iterator[str]:
    values = next(iter(panel.bars.values()))
    ticks, y = _vertical(0, max(values))
    yield from _frame(panel.labels, ticks, y)
    end = panel.first + len(values)
    x = Axis(panel.first, end, _LEFT, WIDTH - _RIGHT)
    wide = (WIDTH - _RIGHT - _LEFT) / len(values)
    for tick in nice_ticks(panel.first, end):
        if tick.is_integer() and panel.first <= tick < end:
            yield _tick(x(tick) + wide / 2, f"{tick:g}")
    gap = 1 if wide > 4 else 0
    for place, value in enumerate(values, panel.first):
        yield (
            f'<rect x="{x(place):.1f}" y="{y(value):.1f}" width="{max(wide - gap, 0.8):.1f}" '
            f'height="{max(y(0) - y(value), 0):.1f}" fill="#0072b2"/>'
        )
