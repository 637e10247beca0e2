"""The tables of trials: as Markdown, CSV and LaTeX.

`summary` has a row for each family, with all its cells: the datasets, K and budgets. `cells` has a
row for each cell, and says who the rival was.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Literal, get_args

from rsp_engine.errors import SuiteError
from rsp_engine.experiments.trials.cells import (
    TrialCell,
    outcome_of,
    pooled,
    trial_cells,
    with_and_without,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rsp_engine.experiments.report.measured import Measured
    from rsp_engine.experiments.suite import PolicyComparison
    from rsp_engine.experiments.trials.bootstrap import PairedDifference

__all__ = [
    "TABLE_FORMATS",
    "TableFormat",
    "TextTable",
    "cells_table",
    "signal_table",
    "summary_tables",
    "table_writer",
    "trial_tables",
]

TableFormat = Literal["markdown", "csv", "latex"]

NEAR = {"ndcg": 0.3, "both": 0.5}
"""How far below the best in hindsight still counts as equal, of 150 and of 300."""
CLEARLY = 0.5
"""A cell is clearly lost if the interval of its difference is below minus this."""

_BUDGETS: Mapping[str, Callable[[int], bool]] = {
    "B >= 3": lambda budget: budget >= 3,
    "B < 3": lambda budget: budget < 3,
}


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of plain text, with a title."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return the table as Markdown, the title in bold above it."""
        lines = [f"**{self.title}**", "", _piped(self.head), _piped(["---"] * len(self.head))]
        return "\n".join([*lines, *map(_piped, self.rows)]) + "\n"

    def csv(self) -> str:
        """Return the table as CSV, without its title."""
        out = StringIO()
        csv.writer(out, lineterminator="\n").writerows((self.head, *self.rows))
        return out.getvalue()

    def latex(self) -> str:
        """Return the table as a LaTeX table environment, in which only standard commands occur."""
        columns = "l" + "r" * (len(self.head) - 1)
        body = "".join(f"{' & '.join(map(_latex, row))} \\\\\n" for row in (self.head, *self.rows))
        first, rest = body.split("\n", 1)
        return (
            f"\\begin{{table}}\n\\caption{{{_latex(self.title)}}}\n"
            f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{first}\n\\hline\n{rest}\\hline\n"
            "\\end{tabular}\n\\end{table}\n"
        )


TABLE_FORMATS: Mapping[TableFormat, Callable[[TextTable], str]] = {
    "markdown": TextTable.markdown,
    "csv": TextTable.csv,
    "latex": TextTable.latex,
}
assert set(TABLE_FORMATS) == set(get_args(TableFormat))  # noqa: S101 - each format has its writer


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "\\": "\\textbackslash{}",
        "<": "$<$",
        ">": "$>$",
    }
)


def _latex(text: str) -> str:
    return text.replace(">=", "\0").translate(_LATEX).replace("\0", "$\\geq$")


def table_writer(name: str) -> Callable[[TextTable], str]:
    """Return the function that writes tables in a format; raise a `SuiteError` for another name."""
    writers = {str(known): write for known, write in TABLE_FORMATS.items()}
    if name not in writers:
        raise SuiteError(f"there is no table format {name}", f"there are {', '.join(writers)}")
    return writers[name]


def trial_tables(
    results: Sequence[tuple[Sequence[PolicyComparison], Sequence[Measured]]], *, has_cells: bool
) -> Iterator[TextTable]:
    """Yield the tables of several result folders, each given with its comparisons.

    A comparison that several folders have is made over the grids of all of them.
    """
    grids_of: dict[PolicyComparison, list[Measured]] = {}
    for comparisons, grids in results:
        for comparison in comparisons:
            grids_of.setdefault(comparison, []).extend(grids)
    if not grids_of:
        raise SuiteError("nothing is compared", "write a [[comparison]] in the suite")
    for comparison, grids in grids_of.items():
        if has_cells:
            yield cells_table(grids, comparison)
        else:
            yield from summary_tables(grids, comparison)
    all_grids = [grid for _, grids in results for grid in grids]
    if not has_cells and (table := signal_table(all_grids)):
        yield table


def summary_tables(grids: Sequence[Measured], comparison: PolicyComparison) -> Iterator[TextTable]:
    """Yield the tables of a comparison: one for each challenger, ways and range of budgets."""
    cells = [cell for grid in grids for cell in trial_cells(grid, comparison)]
    groups = dict.fromkeys((cell.challenger, cell.ways) for cell in cells)
    for challenger, ways in groups:
        for name, holds in _BUDGETS.items():
            chosen = [
                cell
                for cell in cells
                if (cell.challenger, cell.ways) == (challenger, ways) and holds(cell.point.budget)
            ]
            if chosen:
                condition = "".join(f", all with +{way}" for way in ways)
                title = f"{challenger} against {comparison.name}{condition}, {name}"
                yield TextTable(title, _HEAD, tuple(_summary_rows(chosen)))


_HEAD = (
    "data",
    "cells",
    "nDCG: won, tied, lost",
    "mean difference",
    "sum: won, tied, lost",
    "mean difference",
    f"nDCG >= b - {NEAR['ndcg']:g}",
    f"sum >= b - {NEAR['both']:g}",
    "clearly below b",
    "clairvoyant",
)


def _summary_rows(cells: Sequence[TrialCell]) -> Iterator[tuple[str, ...]]:
    families = list(dict.fromkeys(cell.family for cell in cells))
    for family in families:
        yield _summary_row(family, [cell for cell in cells if cell.family == family])
    if len(families) > 1:
        yield _summary_row("all", cells)


def _summary_row(name: str, cells: Sequence[TrialCell]) -> tuple[str, ...]:
    ndcg, both = ([c for c in cells if c.measure == measure] for measure in ("ndcg", "both"))
    clearly = [c for c in (*ndcg, *both) if c.best.difference.high < -CLEARLY]
    return (
        name,
        str(len(ndcg)),
        _outcomes(ndcg),
        _pooled(ndcg),
        _outcomes(both),
        _pooled(both),
        _near(ndcg, NEAR["ndcg"]),
        _near(both, NEAR["both"]),
        str(len({(c.family, c.dataset, c.point) for c in clearly})),
        _headroom(ndcg, both),
    )


def _outcomes(cells: Iterable[TrialCell]) -> str:
    found = [outcome_of(cell.rival.difference) for cell in cells]
    return ", ".join(str(found.count(one)) for one in ("won", "tied", "lost"))


def _pooled(cells: Iterable[TrialCell]) -> str:
    return _written(pooled(cells))


def _written(found: PairedDifference) -> str:
    return f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def _near(cells: Sequence[TrialCell], margin: float) -> str:
    near = sum(cell.best.difference.mean >= -margin for cell in cells)
    return f"{100 * near / len(cells):.0f} %"


def _headroom(ndcg: Sequence[TrialCell], both: Sequence[TrialCell]) -> str:
    """Return how far the clairvoyant is ahead on average, in nDCG and in the sum."""
    gaps = []
    for cells in (ndcg, both):
        known = [c.clairvoyant - c.value for c in cells if c.clairvoyant is not None]
        if not known:
            return "-"
        gaps.append(f"{sum(known) / len(known):+.1f}")
    return ", ".join(gaps)


_CELL_HEAD = (
    *(
        "data",
        "dataset",
        "ch",
        "budget",
        "k",
        "n",
        "queries",
        "ways",
        "challenger",
        "measure",
        "value",
    ),
    *("rival", "difference", "low", "high", "outcome"),
    *("best", "best_difference", "best_low", "best_high", "clairvoyant"),
)


def cells_table(grids: Sequence[Measured], comparison: PolicyComparison) -> TextTable:
    """Return all cells of a comparison, a row each."""
    cells = [cell for grid in grids for cell in trial_cells(grid, comparison)]
    return TextTable(comparison.name, _CELL_HEAD, tuple(map(_cell_row, cells)))


def _cell_row(cell: TrialCell) -> tuple[str, ...]:
    return (
        cell.family,
        str(cell.dataset),
        *map(str, cell.point),
        "+".join(cell.ways),
        cell.challenger,
        cell.measure,
        f"{cell.value:.3f}",
        cell.rival.name,
        *(f"{value:.3f}" for value in cell.rival.difference),
        outcome_of(cell.rival.difference),
        cell.best.name,
        *(f"{value:.3f}" for value in cell.best.difference),
        "" if cell.clairvoyant is None else f"{cell.clairvoyant:.3f}",
    )


def signal_table(grids: Sequence[Measured]) -> TextTable | None:
    """Return what the change signal gives each policy; None if no policy ran both ways."""
    rows = []
    cells = [
        (cell, grid.grid.name)
        for grid in grids
        for measure in ("ndcg", "both")
        for cell in with_and_without(grid, "signal", measure)
    ]
    for policy in dict.fromkeys(cell.challenger for cell, _ in cells):
        own = [cell for cell, _ in cells if cell.challenger == policy]
        ndcg, both = ([c for c in own if c.measure == measure] for measure in ("ndcg", "both"))
        rows.append(
            (policy, str(len(ndcg)), _outcomes(ndcg), _pooled(ndcg), _outcomes(both), _pooled(both))
        )
    title = "What the change signal gives: each policy with it, against itself without it"
    return TextTable(title, ("policy", *_HEAD[1:6]), tuple(rows)) if rows else None
