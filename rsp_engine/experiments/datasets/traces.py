"""Recorded traces of AcquaTop: real mentions, and dfc derived from real follower counts.

A folder has two tables:

    mentions_evening.csv     timestamp_ms, user_id
    followers_evening.csv    timestamp_ms, user_id, followers_count

Each user has one row of followers per round, and rows with the same time are one invocation. The
recorded dfc is the difference between a user's followers and those of the round before, 0 in the
first round. Most differences are 0 too: fewer than ten users change at an invocation. The paper's
datasets have up to 80 changes because of noise; `dfc` adds it here as for generated datasets.

A dataset starts one millisecond before the first mention. So its windows, which are open on the
left, contain the same mentions as those of the authors' program, which are closed on the left.

    python -m rsp_engine.experiments.datasets.traces FOLDER [--seed N]

prints the statistics of the datasets beside those of the paper.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.errors import RspError, SourceError
from rsp_engine.experiments.datasets.dataset import Dataset
from rsp_engine.experiments.datasets.dfc import Dice, check_whole
from rsp_engine.experiments.datasets.families import FAMILIES, evolve_family
from rsp_engine.experiments.datasets.profile import CHS, DATASETS, print_tables
from rsp_engine.experiments.datasets.recording import recorded_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.experiments.datasets.families import Family
    from rsp_engine.model.arrays import Integers

__all__ = ["FOLLOWERS_FILE", "MENTIONS_FILE", "Trace", "derive", "read_trace"]

MENTIONS_FILE = "mentions_evening.csv"
FOLLOWERS_FILE = "followers_evening.csv"
_MOST = 2**31 - 1  # of seeds and numbers


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A recording: times are milliseconds since `start`, users are numbered in order of `names`.

    `report_times` and `dfc` have a row per round and a column per user.
    """

    start: int
    names: Integers
    mention_times: Integers
    mention_users: Integers
    report_times: Integers
    dfc: Integers


def read_trace(folder: Path) -> Trace:
    """Read the traces in a folder; raise a `SourceError` if they are incomplete or inconsistent."""
    mentions = _table(folder / MENTIONS_FILE, ("timestamp_ms", "user_id"))
    path = folder / FOLLOWERS_FILE
    followers = _table(path, ("timestamp_ms", "user_id", "followers_count"))
    followers = followers[np.lexsort(followers.T[[0, 1]])]
    names, rounds = np.unique(followers[:, 1], return_counts=True)
    if len(np.unique(rounds)) != 1:
        raise SourceError(f"{path}: every user must have the same number of rows")
    times, _, counts = followers.reshape(len(names), -1, 3).transpose(2, 1, 0)
    if np.any(times[1:] <= times[:-1]):
        raise SourceError(f"{path} holds a user twice at one time")
    if missing := sorted({*mentions[:, 1].tolist()} - {*names.tolist()}):
        raise SourceError(f"{path} does not hold user {missing[0]}, whom {MENTIONS_FILE} does")
    mentions = mentions[np.lexsort(mentions.T[[1, 0]])]
    start = int(mentions[0, 0]) - 1
    if times.min() <= start:
        raise SourceError(f"{path} begins before the first mention")
    return Trace(
        start,
        names,
        mentions[:, 0] - start,
        np.searchsorted(names, mentions[:, 1]),
        times - start,
        np.diff(counts, axis=0, prepend=counts[:1]),
    )


def derive(
    trace: Trace, seed: int = 0, ch: int = 20, number: int = 1, family: Family = "paper"
) -> Dataset:
    """Return the `number`-th dataset of a test case, with `ch` changes per invocation.

    In another family than the paper's, the mentions and the times of the reports are recorded, and
    the values are generated. The family `churn` needs generated mentions.
    """
    check_whole("seed", seed, 0, _MOST)
    check_whole("number", number, 1, _MOST)
    if family == "churn":
        raise ValueError("the family churn needs generated mentions")
    place = FAMILIES.index(family)
    dice = Dice(seed, 3, number, *((place,) if place else ()))
    before = np.zeros((1, len(trace.names)), dtype=np.int64)
    recorded = np.concatenate((before, trace.dfc))
    return Dataset(
        f"{'DS' if family == 'paper' else family}-CH-{ch} {number}, recorded, seed {seed}",
        trace.start,
        int(max(trace.mention_times[-1], trace.report_times.max())),
        trace.names,
        trace.mention_times,
        trace.mention_users,
        *evolve_family(family, recorded, trace.report_times, ch, dice),
    )


def _table(path: Path, columns: tuple[str, ...]) -> Integers:
    try:
        rows = [[int(row[name] or "") for name in columns] for row in recorded_rows(path, columns)]
        table = np.array(rows, dtype=np.int64)
    except (OverflowError, TypeError, ValueError) as error:
        raise SourceError(f"{path}: a number is missing or wrong: {error}") from error
    if not rows:
        raise SourceError(f"{path} has no rows")
    return table


def main(arguments: Sequence[str]) -> int:
    """Print the statistics of a recording's datasets beside those of the paper."""
    parser = argparse.ArgumentParser(prog="python -m rsp_engine.experiments.datasets.traces")
    parser.add_argument("folder", type=Path, help=f"holds {MENTIONS_FILE} and {FOLLOWERS_FILE}")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the noise")
    options = parser.parse_args(arguments)
    try:
        trace = read_trace(options.folder)
        numbers = range(1, DATASETS + 1)
        made = {ch: [derive(trace, options.seed, ch, n) for n in numbers] for ch in CHS}
    except (RspError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    print_tables(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
