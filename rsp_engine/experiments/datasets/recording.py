"""A recorded run of AcquaTop: the objects of each window, with their true remote values."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["RecordedReplay", "RecordedWindow", "read_recording", "recorded_rows"]

_COLUMNS = (
    "window",
    "eval_ts_ms",
    "user_id",
    "mn",
    "dfc_true",
    "oracle_rank",
    "initial_replica_dfc",
)


@dataclass(frozen=True, slots=True)
class RecordedWindow:
    """The objects of a window in the order of the oracle, and the close of the window.

    `streamed` has their values from the stream, `remote` their true remote values.
    """

    close: int
    keys: Integers
    streamed: Integers
    remote: Integers


@dataclass(frozen=True, slots=True, eq=False)
class RecordedReplay:
    """The windows of a run, and the initial remote value of each key in the replica.

    Keys are numbered in the order of the recorded user ids. `least` and `largest` are the bounds of
    the streamed and of the remote values over the whole run.
    """

    windows: tuple[RecordedWindow, ...]
    snapshot: Integers
    least: tuple[int, int]
    largest: tuple[int, int]

    @property
    def step(self) -> int:
        """The time from one window to the next, in milliseconds."""
        return self.windows[1].close - self.windows[0].close

    def renamed(self, seed: int) -> RecordedReplay:
        """Return a copy with permuted keys, so that ties are broken at random.

        The oracle's order is unchanged: breaking ties by key then agrees with it only by chance.
        """
        names = np.random.default_rng(seed).permutation(len(self.snapshot))
        windows = tuple(replace(window, keys=names[window.keys]) for window in self.windows)
        snapshot = np.empty_like(self.snapshot)
        snapshot[names] = self.snapshot
        return replace(self, windows=windows, snapshot=snapshot)

    def score(self, streamed: Integers | Floats, remote: Integers | Floats) -> Floats:
        """Return the score of the recorded query: 0.7 norm(streamed) + 0.3 norm(remote)."""
        (least_s, least_d), (largest_s, largest_d) = self.least, self.largest
        stream: Floats = 0.7 * (streamed - least_s) / max(largest_s - least_s, 1)
        return stream + 0.3 * (remote - least_d) / max(largest_d - least_d, 1)


def read_recording(path: Path) -> RecordedReplay:
    """Read a recording; raise a `SourceError` if it is incomplete or malformed."""
    rows = [
        [_number(path, row[name]) for name in _COLUMNS] for row in recorded_rows(path, _COLUMNS)
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, len(_COLUMNS))
    # Sorted by window, then by the oracle's rank.
    window, close, users, streamed, remote, _, initial = table[np.lexsort(table.T[[5, 0]])].T
    if len(np.unique(window)) < 2:
        raise SourceError(f"{path} must hold at least two windows")
    names, keys = np.unique(users, return_inverse=True)
    snapshot = np.zeros(len(names), dtype=np.int64)
    snapshot[keys] = initial
    starts = np.flatnonzero(np.r_[True, np.diff(window) > 0])
    parts = [slice(*edges) for edges in zip(starts, [*starts[1:], None], strict=True)]
    values = np.r_[remote, initial]
    return RecordedReplay(
        tuple(
            RecordedWindow(int(close[part][0]), keys[part], streamed[part], remote[part])
            for part in parts
        ),
        snapshot,
        (int(streamed.min()), int(values.min())),
        (int(streamed.max()), int(values.max())),
    )


def recorded_rows(path: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file; raise a `SourceError` if a column is missing."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if missing := sorted(set(columns) - set(rows.fieldnames or ())):
                raise SourceError(f"{path} has no column {', '.join(missing)}")
            yield from rows
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path} is no CSV file: {error}") from error


def _number(path: Path, text: str | None) -> int:
    try:
        return int(text or "")
    except ValueError:
        raise SourceError(f"{path}: expected a whole number, not {text!r}") from None
