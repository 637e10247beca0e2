"""The report on disk: the page and the figures, written from result folders and recorded data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.errors import SinkError, StateError
from rsp_engine.experiments.datasets.profile import CHS
from rsp_engine.experiments.datasets.recording import read_recording
from rsp_engine.experiments.replay import compare, read_reference
from rsp_engine.experiments.report.measured import measured
from rsp_engine.experiments.report.page import PageContent, figures_of, page
from rsp_engine.experiments.report.plots import write_figures
from rsp_engine.experiments.results import is_result_folder, read_result_folder
from rsp_engine.experiments.suite import Data
from rsp_engine.experiments.tasks import dataset_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.experiments.replay import Compared
    from rsp_engine.experiments.report.measured import Measured

__all__ = ["found_results", "page_content", "write_report"]

_REPLAY, _REFERENCE = "replay_ch20.csv", "reference_metrics_ch20.csv"


def found_results(root: Path, names: Sequence[str]) -> list[Path]:
    """Return the result folders with these names; without names, all finished or begun ones."""
    if names:
        return [root / name for name in names]
    inside = sorted(root.iterdir()) if root.is_dir() else []
    folders = [path for path in inside if is_result_folder(path)]
    if not folders:
        raise StateError(f"{root} holds no results", "run a suite first: rsp experiment run")
    return folders


def page_content(folders: Sequence[Path], data: Path | None) -> PageContent:
    """Read the content of the report; `data` is the folder of recorded traces, if any."""
    grids = [grid for folder in folders for grid in measured(read_result_folder(folder))]
    grids.sort(key=_order)
    return PageContent(grids, _datasets(grids, data), _replayed(data))


def _order(grid: Measured) -> tuple[int, str, bool]:
    """Return the sort key of a grid: the paper's order, then other suites; generated data first."""
    name = str(grid.results.manifest["suite"])
    papers = ("preliminary", *(f"experiment-{number}" for number in range(1, 5)))
    place = papers.index(name) if name in papers else len(papers)
    return place, name, grid.source == "recorded"


def _datasets(
    grids: Sequence[Measured], folder: Path | None
) -> dict[str, dict[int, list[Dataset]]]:
    """Return the datasets of each source by CH, derived again from their seed.

    Their mentions are complete, however the grids count them.
    """
    datasets: dict[str, dict[int, list[Dataset]]] = {}
    for grid in grids:
        manifest = grid.results.manifest["data"]
        is_recorded = grid.source == "recorded"
        is_from_file = grid.source in {"replay", "own"}
        if grid.source in datasets or is_from_file or (is_recorded and folder is None):
            continue
        data = Data(
            grid.source,
            str(folder) if is_recorded else None,
            manifest["seed"],
            manifest["datasets"],
            manifest["windows"],
            "mentions",
            crowd=manifest.get("crowd", 1),
        )
        numbers = range(1, data.datasets + 1)
        datasets[grid.source] = {
            ch: [dataset_of(data, "paper", ch, n) for n in numbers] for ch in CHS
        }
    return datasets


def _replayed(folder: Path | None) -> list[Compared]:
    if folder is None or not all((folder / name).exists() for name in (_REPLAY, _REFERENCE)):
        return []
    return list(compare(read_recording(folder / _REPLAY), read_reference(folder / _REFERENCE)))


def write_report(content: PageContent, output: Path, figures: Path | None = None) -> None:
    """Write the report, and its figures as files if `figures` names a folder.

    Raises a `SinkError` if a file cannot be written.
    """
    try:
        if figures is not None:
            write_figures(figures_of(content), figures)
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(page(content), encoding="utf-8", newline="\n")
    except OSError as error:
        raise SinkError(f"{error.filename or output} cannot be written: {error.strerror}") from None
