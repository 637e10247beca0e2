"""Replay of a recorded run of AcquaTop: the answers that each policy would have given.

The recording becomes a workload whose windows have the recorded objects, streamed values and remote
values, and the answers are compared with the recorded oracle's. The recording has no arrival times,
so

- the list of the AT-* policies has the 2(K+N) best of a window: the size that AcquaTop expects of
  the Super-MTK+N list (section 5.3);
- an object lives for as many evaluations as its streamed value. In the recorded run a value of 2
  means that the next window contains the object too; with a value of 1 it may or may not.

The replica starts as a snapshot from the time at which the first window opens.

    python -m rsp_engine.experiments.replay FOLDER

prints the measures beside those of the authors' own run. The folder contains both recordings.
"""

from __future__ import annotations

import sys
from dataclasses import astuple, dataclass
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pyoxigraph import Literal, NamedNode
from rich.console import Console
from rich.table import Table

from rsp_engine.errors import RspError, SourceError
from rsp_engine.experiments.datasets.dataset import RANGE, STEP, USER
from rsp_engine.experiments.datasets.recording import RecordedReplay, read_recording, recorded_rows
from rsp_engine.experiments.policy_run import RunSetting, answers
from rsp_engine.experiments.workload import MentionStream, ScoreBounds, make_workload
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.scoring.ranking_measures import CumulatedMeasures, Measures, measure
from rsp_engine.policies import POLICIES
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.experiments.workload import Workload

__all__ = [
    "Compared",
    "Reference",
    "ReplayOutcome",
    "ReplaySetting",
    "Total",
    "compare",
    "mean",
    "read_reference",
    "recorded_workload",
    "replay_recording",
    "replay_summary",
    "total",
]

SEEDS = 20
"""The number of seeds over which the measures of the random policies are averaged."""


@dataclass(frozen=True, slots=True)
class ReplaySetting:
    """K and N of AcquaTop, and the depth of nDCG; the defaults are those of the recorded run."""

    k: int = 5
    n: int = 10
    depth: int = 5


DEFAULT = ReplaySetting()


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The measures of a window, and the number of keys fetched.

    `has_true_scores`: the scores of the answer equal those of the oracle's answer; ties may be
    broken differently.
    """

    measures: Measures
    fetched: int
    has_true_scores: bool


def replay_recording(
    recording: RecordedReplay,
    policy: str,
    budget: int,
    seed: int = 0,
    setting: ReplaySetting = DEFAULT,
) -> Iterator[ReplayOutcome]:
    """Yield the outcome of every window under a policy, named as for `variant`."""
    k = setting.k
    run = RunSetting(policy, budget, k, k + 2 * setting.n, seed)
    streamed = np.zeros(len(recording.snapshot), dtype=np.int64)
    for window, (users, dfc, fetched) in zip(
        recording.windows, answers(recorded_workload(recording), run), strict=True
    ):
        streamed[window.keys] = window.streamed
        scores = recording.score(streamed[list(users)], np.array(dfc))
        true = recording.score(window.streamed, window.remote)[:k]
        measures = measure(users, window.keys.tolist(), k, setting.depth)
        yield ReplayOutcome(measures, fetched, np.array_equal(scores, true))


@lru_cache(maxsize=8)
def recorded_workload(recording: RecordedReplay) -> Workload:
    """Return the workload of a recorded run."""
    (least_s, least_d), (largest_s, largest_d) = recording.least, recording.largest
    range_ = RANGE * recording.step // STEP
    frame = TimeFrame(range_, recording.step, recording.windows[0].close - range_)
    # As of equal scores the larger key ranks first, the order of the names is that of the keys.
    width = len(str(len(recording.snapshot)))
    users = [NamedNode(f"{USER}{key:0{width}}") for key in range(len(recording.snapshot))]
    return make_workload(
        ScoreBounds((least_s, largest_s), (least_d, largest_d)),
        frame,
        len(recording.windows),
        _mentions(recording, frame),
        users,
        RecordedEndpoint({(users[key],): values for key, values in _history(recording, frame.t0)}),
    )


def _history(recording: RecordedReplay, start: int) -> Iterator[tuple[int, list[Value]]]:
    """Yield each key with its remote values: that of the snapshot, and each change of it."""
    known = dict(enumerate(recording.snapshot.tolist()))
    changes = {key: [Value(start, ({"dfc": Literal(dfc)},))] for key, dfc in known.items()}
    for window in recording.windows:
        for key, dfc in zip(window.keys.tolist(), window.remote.tolist(), strict=True):
            if known[key] != dfc:
                known[key] = dfc
                changes[key].append(Value(window.close, ({"dfc": Literal(dfc)},)))
    yield from changes.items()


def _mentions(recording: RecordedReplay, frame: TimeFrame) -> MentionStream:
    """Return mentions with which every window has its recorded objects and streamed values.

    A mention at the close of a window is in the next window too, where the same post occurs once
    more, so that all objects with the same value are equally late.
    """
    rows: list[tuple[int, int, int]] = []
    counts = [
        dict(zip(window.keys.tolist(), window.streamed.tolist(), strict=True))
        for window in recording.windows
    ]
    posts, last = count(), len(counts) - 1
    shared: dict[int, list[int]] = {}
    for index, values in enumerate(counts):
        edges = frame.interval(index)
        before, shared = shared, {}
        for key, value in values.items():
            known = before.get(key, [])
            own = [*known, *islice(posts, value - len(known))]
            both = value - 1 if index == last else min(value - 1, counts[index + 1].get(key, 0))
            shared[key] = own[value - both :]
            rows += [(post, key, edges.open + frame.step) for post in own[: value - both]]
            rows += [(post, key, edges.close) for post in shared[key]]
    return MentionStream(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


@dataclass(frozen=True, slots=True)
class Total:
    """The sums over a run: its measures, keys fetched, and windows with true scores."""

    measures: Measures
    fetched: float
    true_windows: float


def total(outcomes: Iterable[ReplayOutcome]) -> Total:
    """Return the sums over the windows of a run."""
    sums, fetched, true_windows = CumulatedMeasures(), 0, 0
    for one in outcomes:
        sums = sums.add(one.measures)
        fetched += one.fetched
        true_windows += one.has_true_scores
    return Total(sums.sums, fetched, true_windows)


def mean(totals: Sequence[Total]) -> Total:
    """Return the mean of several runs."""
    rows = [(*astuple(one.measures), one.fetched, one.true_windows) for one in totals]
    *measures, fetched, true_windows = np.mean(rows, axis=0).tolist()
    return Total(Measures(*measures), fetched, true_windows)


@dataclass(frozen=True, slots=True)
class Compared:
    """A policy under a budget: our run, and the authors' run if there is one."""

    name: str
    budget: int
    ours: Total
    reference: Reference | None


class Reference(NamedTuple):
    """The cumulated measures of the authors' run."""

    ndcg: float
    ndcg_by_place: float
    precision: float


def read_reference(path: Path) -> dict[tuple[str, int], Reference]:
    """Read the measures of the authors' run, by policy and budget."""
    names = ("cum_ndcg_paper_formula", "cum_ndcg_authors_program", "cum_precision")
    try:
        return {
            (row["policy"], int(row["budget"])): Reference(*(float(row[name]) for name in names))
            for row in recorded_rows(path, ("policy", "budget", *names))
        }
    except (TypeError, ValueError) as error:
        raise SourceError(f"{path}: a number is missing or wrong: {error}") from error


def compare(
    recording: RecordedReplay, reference: Mapping[tuple[str, int], Reference]
) -> Iterator[Compared]:
    """Yield every policy under every budget of the reference, and AT-VOI with the change signal.

    AT-TSM occurs twice: the program of the authors fetches one key less than the budget allows.
    """
    for budget in sorted({budget for _, budget in reference}):
        for name in (*POLICIES, "AT-VOI+signal"):
            seeds = range(SEEDS if name.endswith("-RND") else 1)
            runs = [total(replay_recording(recording, name, budget, seed)) for seed in seeds]
            yield Compared(name, budget, mean(runs), reference.get((name, budget)))
        less = total(replay_recording(recording, "AT-TSM", max(budget - 1, 0)))
        yield Compared("AT-TSM, B-1", budget, less, reference.get(("AT-TSM", budget)))


def replay_summary(rows: Iterable[Compared], windows: int) -> Table:
    """Return a table of our measures, each beside the reference."""
    table = Table(title=f"Cumulated over {windows} windows: ours / the authors' run")
    table.caption = f"RND: means of {SEEDS} seeds. B-1: with one key less than the budget."
    table.add_column("policy")
    for heading in ("budget", "fetched", "true scores", "nDCG", "nDCG by place", "precision"):
        table.add_column(heading, justify="right")
    for row in rows:
        sums = row.ours
        theirs = row.reference or (None, None, None)
        ours = (sums.measures.ndcg, sums.measures.ndcg_by_place, sums.measures.precision)
        table.add_row(
            row.name,
            str(row.budget),
            f"{sums.fetched:.0f}",
            f"{sums.true_windows:.0f}",
            *(
                f"{a:.1f} / {'-' if b is None else f'{b:.1f}':>5}"
                for a, b in zip(ours, theirs, strict=True)
            ),
        )
    return table


def main(arguments: Sequence[str]) -> int:
    """Print the table for a folder with a recording and its reference."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m rsp_engine.experiments.replay FOLDER\n")
        return 2
    folder = Path(arguments[0])
    try:
        recording = read_recording(folder / "replay_ch20.csv")
        reference = read_reference(folder / "reference_metrics_ch20.csv")
    except RspError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    Console(width=100).print(replay_summary(compare(recording, reference), len(recording.windows)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
