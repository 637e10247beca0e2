"""Figures as files, drawn by matplotlib: SVG and PNG, for papers and slides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from rsp_engine.errors import RspError
from rsp_engine.experiments.report.figures import Bars, Curves, Lines
from rsp_engine.experiments.report.svg import in_legend_order, style_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rsp_engine.experiments.report.figures import Figure, Panel

__all__ = ["write_figures"]

_MARKS = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "cross": "x",
    "none": "None",
}
_FORMATS = ("svg", "png")


def write_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write figures as SVG and PNG files; the same figures give the same bytes."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Drawing
    except ImportError:
        hint = "pip install 'rsp-engine[plots]'; the report itself needs nothing more"
        raise RspError("figures as files need matplotlib, the extra `plots`", hint) from None
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    # Without salt and date, names and times would differ from one run to the next.
    with mpl.rc_context({"svg.hashsalt": "rsp-engine", "svg.fonttype": "none", "font.size": 9}):
        for figure in figures:
            rows = -(-len(figure.panels) // 2)
            drawing = Drawing(figsize=(9, 3.4 * rows), layout="constrained")
            axes = drawing.subplots(rows, 2, squeeze=False).ravel()
            for panel, axis in zip(figure.panels, axes, strict=False):
                _draw(panel, axis)
            for axis in axes[len(figure.panels) :]:
                axis.axis("off")
            _legend(drawing, axes[0], figure)
            for kind in _FORMATS:
                path = folder / f"{figure.key}.{kind}"
                drawing.savefig(path, dpi=150, metadata={"Date": None} if kind == "svg" else None)
                written.append(path)
    return written


def _legend(drawing: Any, axis: Any, figure: Figure) -> None:  # noqa: ANN401 - matplotlib may be missing
    handles, labels = axis.get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    names = [name for name in in_legend_order(figure.names) if name in known]
    if names:
        places = "outside lower center"
        drawing.legend([known[n] for n in names], names, loc=places, ncols=5, frameon=False)


def _draw(panel: Panel, axis: Any) -> None:  # noqa: ANN401 - matplotlib may be missing
    axis.set_title(panel.labels.title, loc="left", fontweight="bold")
    axis.set_xlabel(panel.labels.x)
    axis.set_ylabel(panel.labels.y)
    axis.spines[["top", "right"]].set_visible(False)
    match panel:
        case Lines():
            _lines(panel, axis)
        case Curves():
            for name, curve in panel.curves.items():
                axis.plot(range(1, len(curve) + 1), curve, label=name, **_look(name, marks=False))
        case Bars():
            for values in panel.bars.values():
                places = range(panel.first, panel.first + len(values))
                axis.bar(places, values, width=0.9, color="#0072b2")
        case _ as unreachable:
            assert_never(unreachable)


def _lines(panel: Lines, axis: Any) -> None:  # noqa: ANN401 - matplotlib may be missing
    places = range(len(panel.ticks))
    for name, line in panel.lines.items():
        values = [m.value for m in line]
        below = [m.value - m.least for m in line]
        above = [m.largest - m.value for m in line]
        axis.errorbar(places, values, yerr=(below, above), label=name, capsize=2, **_look(name))
    axis.set_xticks(list(places), list(panel.ticks))
    axis.grid(axis="y", color="#dddddd")


def _look(name: str, *, marks: bool = True) -> dict[str, Any]:
    style = style_of(name)
    dashes = (0, tuple(map(float, style.dashes.split()))) if style.dashes else "-"
    return {
        "color": style.colour,
        "linewidth": style.width * 0.8,
        "linestyle": dashes,
        "marker": _MARKS[style.mark] if marks else "None",
        "markersize": 4,
    }
