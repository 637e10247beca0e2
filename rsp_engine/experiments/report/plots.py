"""Figures drawn by matplotlib (the extra `plots`): as SVG in the page, as SVG, PNG and PDF files.

Colours can be distinguished by colour-blind readers (Okabe, Ito: Color universal design, 2008), and
every policy has its own marker as well. The same figures give the same bytes.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from importlib.util import find_spec
from io import StringIO
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

from rsp_engine.errors import RspError
from rsp_engine.experiments.report.figures import Bars, Curves, Lines
from rsp_engine.model.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing
    from matplotlib.lines import Line2D

    from rsp_engine.experiments.report.figures import Figure, Panel

__all__ = ["can_draw", "legend_svg", "panel_svg", "write_figures"]

_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_PANEL_INCHES = (4.2, 3.0)
_LEGEND_COLUMNS = 3
_BAR_COLOUR = "#0072b2"


class Style(NamedTuple):
    """Colour, marker, dashes and line width of a policy, in matplotlib's terms."""

    colour: str
    marker: str
    dashes: tuple[float, ...] = ()
    width: float = 1.1


_PROPOSED = 2.1
"""The line width of the policies that the papers, or this project, propose."""
_STYLES = {
    "AT-VOI": Style("#7b3294", "o", width=_PROPOSED),
    "WSJ-VOI": Style("#c2a5cf", "o"),
    "AT-TSM": Style("#d55e00", "o", width=_PROPOSED),
    "AT-BSM": Style("#0072b2", "s", width=_PROPOSED),
    "AT-LRU": Style("#56b4e9", "^"),
    "AT-WBM": Style("#cc79a7", "D"),
    "AT-RND": Style("#8c6d31", "x"),
    "WSJ-LRU": Style("#009e73", "^"),
    "WSJ-WBM": Style("#e69f00", "D"),
    "WSJ-RND": Style("#999999", "x"),
    "AT-ASM": Style("#222222", "None", (6, 3)),
    "EXACT": Style("#222222", "None", (1, 2)),
    "WST": Style("#222222", "None", (2, 3)),
}
"""In the order of legends: the proposed policies first, the bounds last."""
_OTHER_POLICY = Style("#4b6a88", "o")
_DASHES = {"signal": (6.0, 3.0), "list": (3.0, 2.0), "pushed": (1.0, 1.0)}
"""The dashes of the ways in which a run differs from the usual one."""


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


@contextmanager
def _settings() -> Iterator[None]:
    """Apply matplotlib's defaults and our settings; a user's matplotlibrc has no effect."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        # Without a salt, the ids in an SVG differ from one run to the next. Text is written as
        # text, so that readers can select it and search for it.
        mpl.rc("svg", hashsalt="rsp-engine", fonttype="none")
        mpl.rc("font", size=9)
        mpl.rc("axes", titlesize=9, titleweight="bold", titlelocation="left")
        mpl.rc("axes", grid=True, axisbelow=True)
        mpl.rc("axes.grid", axis="y")
        mpl.rc("axes.spines", top=False, right=False)
        mpl.rc("grid", color="#dddddd")
        mpl.rc("legend", frameon=False)
        yield


def panel_svg(panel: Panel, prefix: str) -> str:
    """Return a panel as an SVG element of an HTML page; `prefix` makes its ids unique there."""
    from matplotlib.figure import Figure as Drawing

    with _settings():
        drawing = Drawing(figsize=_PANEL_INCHES)
        # The same margins everywhere, so that the axes of neighbouring panels are aligned.
        drawing.subplots_adjust(left=0.14, right=0.96, bottom=0.16, top=0.91)
        _draw(panel, drawing.subplots())
        return _element(drawing, prefix)


def legend_svg(names: Iterable[str], prefix: str) -> str:
    """Return the legend of a figure as an SVG element of an HTML page; nothing without names."""
    from matplotlib.figure import Figure as Drawing

    if not (ordered := _in_legend_order(names)):
        return ""
    with _settings():
        rows = -(-len(ordered) // _LEGEND_COLUMNS)
        drawing = Drawing(figsize=(_PANEL_INCHES[0], 0.19 * rows + 0.06))
        drawing.legend(
            handles=_handles(ordered), loc="center", ncols=_LEGEND_COLUMNS, handlelength=3
        )
        return _element(drawing, prefix)


def _element(drawing: Drawing, prefix: str) -> str:
    """Return a drawing as an SVG element without XML declaration, with ids of its own."""
    out = StringIO()
    drawing.savefig(out, format="svg", metadata=_NO_METADATA, transparent=True)
    element = out.getvalue()
    element = element[element.index("<svg") :].rstrip()
    return re.sub(r'(\bid="|\burl\(#|\bhref="#)', rf"\g<1>{prefix}.", element)


def write_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write figures as SVG, PNG and PDF files, and return the paths of these.

    Raises an `RspError` where matplotlib is not installed.
    """
    if not can_draw():
        hint = (
            f"install it: {install_command('plots')};"
            " without --figures, a report is written that has only tables"
        )
        raise RspError("figures as files need matplotlib, the extra `plots`", hint)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with _settings():
        for figure in figures:
            drawing = _drawing(figure)
            svg, png, pdf = (folder / f"{figure.key}.{kind}" for kind in ("svg", "png", "pdf"))
            drawing.savefig(svg, metadata=_NO_METADATA)
            drawing.savefig(png, dpi=150, metadata={"Software": None})
            drawing.savefig(pdf, metadata={"CreationDate": None, "Producer": None, "Creator": None})
            written += [svg, png, pdf]
    return written


def _drawing(figure: Figure) -> Drawing:
    """Return a figure with two panels in a row, and one legend below all."""
    from matplotlib.figure import Figure as Drawing

    rows = -(-len(figure.panels) // 2)
    drawing = Drawing(figsize=(9, 3.4 * rows), layout="constrained")
    axes = drawing.subplots(rows, 2, squeeze=False).ravel()
    for panel, axis in zip(figure.panels, axes, strict=False):
        _draw(panel, axis)
    for axis in axes[len(figure.panels) :]:
        axis.axis("off")
    if names := _in_legend_order(figure.names):
        drawing.legend(handles=_handles(names), loc="outside lower center", ncols=5, handlelength=3)
    return drawing


def _style_of(name: str) -> Style:
    """Return the style of a policy, with dashes for a run that differs from the usual one."""
    policy, *words = name.split("+")
    style = _STYLES.get(policy, _OTHER_POLICY)
    dashes = tuple(chain.from_iterable(_DASHES[word] for word in words if word in _DASHES))
    return style._replace(marker="s", dashes=dashes) if dashes else style


def _in_legend_order(names: Iterable[str]) -> list[str]:
    order = {policy: place for place, policy in enumerate(_STYLES)}
    return sorted(names, key=lambda name: (order.get(name.partition("+")[0], len(order)), name))


def _handles(names: Iterable[str]) -> list[Line2D]:
    from matplotlib.lines import Line2D

    return [Line2D([], [], label=name, **_look(name)) for name in names]


def _look(name: str) -> dict[str, Any]:
    style = _style_of(name)
    return {
        "color": style.colour,
        "linewidth": style.width,
        "linestyle": (0, style.dashes) if style.dashes else "-",
        "marker": style.marker,
        "markersize": 5 if style.width == _PROPOSED else 4,
    }


def _draw(panel: Panel, axis: Axes) -> None:
    axis.set_title(panel.labels.title)
    axis.set_xlabel(panel.labels.x)
    axis.set_ylabel(panel.labels.y)
    match panel:
        case Lines():
            _draw_lines(panel, axis)
        case Curves():
            _draw_curves(panel, axis)
        case Bars():
            _draw_bars(panel, axis)
        case _ as unreachable:
            assert_never(unreachable)


def _drawing_order(names: Iterable[str]) -> list[str]:
    """Return names in the order to draw them: the proposed policies last, above all others."""
    return sorted(names, key=lambda name: _style_of(name).width)


def _draw_lines(panel: Lines, axis: Axes) -> None:
    first, last = -0.35, max(len(panel.ticks) - 1, 1) + 0.35
    names = _drawing_order(panel.lines)
    for order, name in enumerate(names):
        line = panel.lines[name]
        # Each line is a little to the side of the others, so that equal spreads stay visible.
        shift = (order - (len(names) - 1) / 2) * 0.003 * (last - first)
        values = [m.value for m in line]
        spread = [m.value - m.least for m in line], [m.largest - m.value for m in line]
        places = [place + shift for place in range(len(line))]
        axis.errorbar(places, values, yerr=spread, elinewidth=0.8, **_look(name))
    axis.set_xlim(first, last)
    axis.set_xticks(range(len(panel.ticks)), panel.ticks)
    least = min(m.least for line in panel.lines.values() for m in line)
    margin = 0.04 * (panel.most - least) or 1
    axis.set_ylim(least - margin, panel.most + margin)


def _draw_curves(panel: Curves, axis: Axes) -> None:
    for name in _drawing_order(panel.curves):
        curve = panel.curves[name]
        marked = (len(curve) // 10, max(len(curve) // 5, 1))
        axis.plot(range(1, len(curve) + 1), curve, markevery=marked, **_look(name))
    _count_from_zero(axis, [value for curve in panel.curves.values() for value in curve])


def _draw_bars(panel: Bars, axis: Axes) -> None:
    for values in panel.bars.values():
        edges = [panel.first + place - 0.5 for place in range(len(values) + 1)]
        axis.stairs(values, edges, fill=True, color=_BAR_COLOUR)
    axis.set_xlim(edges[0], edges[-1])
    _count_from_zero(axis, [value for values in panel.bars.values() for value in values])


def _count_from_zero(axis: Axes, values: Sequence[float]) -> None:
    """Start the y axis at zero, and tick the x axis at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_ylim(0, 1.05 * max(values) or 1)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
