"""Statistics of datasets, beside those that AcquaTop publishes (section 6.1, Table 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.model.arrays import Integers

__all__ = [
    "CHS",
    "DATASETS",
    "INVOCATIONS",
    "PAIRS",
    "RESULTS",
    "TABLE_3",
    "Mentions",
    "Quartiles",
    "Summary",
    "changes",
    "changes_profile",
    "mentions",
    "mentions_profile",
    "print_tables",
    "spread_of",
    "summary_of",
]


class Quartiles(NamedTuple):
    """The minimum, the median and the maximum."""

    least: float
    median: float
    largest: float


class Summary(NamedTuple):
    """The columns of Table 3."""

    mean: float
    median: float
    first_quartile: float
    third_quartile: float


TABLE_3 = {
    5: Summary(5.53, 6, 5, 6),
    10: Summary(10.33, 12, 10, 12),
    20: Summary(20.45, 23, 20.5, 24),
    40: Summary(40.33, 47, 40, 48),
    80: Summary(79.97, 94, 77, 96),
}
CHS = tuple(TABLE_3)
DATASETS = 5
"""The number of datasets of each CH in the paper."""

PAIRS = Quartiles(26, 38, 59)
"""The paper's number of mentions in a window, which counts `pairs`; see `Mentions`."""

RESULTS = 30
"""The average number of users in a window of the paper."""

INVOCATIONS = 702
"""The number of invocations in the paper's datasets."""


class Mentions(NamedTuple):
    """The mentions of each window, counted in three ways.

    `whole` counts every mention. `pairs` counts a user once per part of the window, which are the
    slide and the rest. `users` counts a user once: these are the results of the query.
    """

    whole: Integers
    pairs: Integers
    users: Integers


def mentions(dataset: Dataset) -> Mentions:
    """Return the counts of all windows of a dataset."""
    rows = []
    for opened, closed in dataset.windows:
        counts = dataset.mentioned(opened, closed)
        pairs = dataset.mentioned_parts(opened, closed).sum()
        rows.append((counts.sum(), pairs, np.count_nonzero(counts)))
    return Mentions(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def changes(dataset: Dataset) -> Integers:
    """Return the number of users whose dfc changes at each invocation."""
    places = np.searchsorted(dataset.invocations, dataset.changes.times)
    return np.bincount(places, minlength=len(dataset.invocations)).astype(np.int64)


def spread_of(numbers: Integers) -> Quartiles:
    """Return the minimum, median and maximum of numbers.

    >>> spread_of(np.array([3, 1, 2, 9]))
    Quartiles(least=1.0, median=2.5, largest=9.0)
    """
    return Quartiles(*np.quantile(numbers, (0, 0.5, 1)).tolist())


def summary_of(numbers: Integers) -> Summary:
    """Return the mean, median and quartiles of numbers.

    >>> summary_of(np.array([0, 1, 2, 3, 4]))
    Summary(mean=2.0, median=2.0, first_quartile=1.0, third_quartile=3.0)
    """
    return Summary(float(numbers.mean()), *np.quantile(numbers, (0.5, 0.25, 0.75)).tolist())


def mentions_profile(dataset: Dataset) -> Table:
    """Return a table of a dataset's mentions beside the paper's."""
    counted = mentions(dataset)
    table = Table(title=f"Mentions in {len(dataset.windows)} windows: {dataset.name}")
    table.caption = (
        f"{len(dataset.mention_times)} mentions of {len(np.unique(dataset.mention_users))} among "
        f"{len(dataset.names)} users. The program of the authors counts pairs of a user and a "
        "part of the window."
    )
    for heading in ("per window", "minimum", "median", "maximum", "mean", "paper"):
        table.add_column(heading, justify="left" if heading == "per window" else "right")
    theirs = "/".join(f"{one:g}" for one in PAIRS)
    for label, counts, published in (
        ("mentions", counted.whole, "-"),
        ("mentions as the paper counts", counted.pairs, theirs),
        ("users (results)", counted.users, f"about {RESULTS}"),
    ):
        cells = (*spread_of(counts), float(counts.mean()))
        table.add_row(label, *(f"{cell:.1f}" for cell in cells), published)
    return table


def changes_profile(datasets: Mapping[int, Sequence[Dataset]]) -> Table:
    """Return a table of the changes per invocation of each dataset, beside Table 3."""
    table = Table(title="Changes of dfc per invocation")
    table.add_column("dataset")
    for heading in ("invocations", "mean", "median", "1st quartile", "3rd quartile"):
        table.add_column(heading, justify="right")
    for ch, made in datasets.items():
        if ch in TABLE_3:
            cells = (f"{cell:g}" for cell in TABLE_3[ch])
            table.add_row(f"DS-CH-{ch}, paper", str(INVOCATIONS), *cells, style="bold")
        for one in made:
            cells = (f"{cell:.2f}" for cell in summary_of(changes(one)))
            table.add_row(one.name, str(len(one.invocations)), *cells)
        table.add_section()
    return table


def print_tables(datasets: Mapping[int, Sequence[Dataset]]) -> None:
    """Print the statistics of the datasets of each CH beside those of the paper."""
    console = Console(width=100)
    console.print(mentions_profile(datasets[CHS[0]][0]))
    console.print(changes_profile(datasets))
