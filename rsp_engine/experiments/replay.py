"""Replay of a recorded run of AcquaTop: the answers that each policy would have given.

At each window the policy elects keys by the replica's values, their true values are fetched, and
the resulting ranking is compared with the oracle's. The recording has no arrival times, so

- the list of the AT-* policies is the 2(K+N) best of the window by the replica's values: the size
  that AcquaTop expects of the Super-MTK+N list (section 5.3);
- an object lives for as many evaluations as its streamed value. In the recorded run a value of 2
  means that the next window contains the object too; with a value of 1 it may or may not.

The replica starts as a snapshot that is one step old at the first window. Change intervals are
learned as in the engine.

    python -m rsp_engine.experiments.replay FOLDER

prints the measures beside those of the authors' own run. The folder contains both recordings.
"""

from __future__ import annotations

import sys
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from rsp_engine.errors import RspError, SourceError
from rsp_engine.experiments.datasets.recording import RecordedReplay, read_recording, recorded_rows
from rsp_engine.experiments.simulated_replica import CandidateList, SimulatedReplica, variant
from rsp_engine.operators.scoring.ranking_measures import CumulatedMeasures, Measures, measure
from rsp_engine.policies import POLICIES
from rsp_engine.replica.store.estimator import LearnedIntervals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.experiments.datasets.recording import RecordedWindow
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.policies.policy import CandidatePlaces

__all__ = [
    "Compared",
    "Reference",
    "ReplayOutcome",
    "ReplaySetting",
    "Total",
    "compare",
    "mean",
    "read_reference",
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
    policy_variant = variant(policy)
    start = recording.windows[0].close - recording.step
    replica = SimulatedReplica(
        recording.snapshot, start, LearnedIntervals(recording.step), policy_variant, seed
    )
    size = 2 * (setting.k + setting.n) if policy_variant.proposer == "list" else None
    truth = recording.snapshot.astype(np.float64)
    for window in recording.windows:
        truth[window.keys] = window.remote
        scores = recording.score(window.streamed, replica.values[window.keys])
        places = _best_first(scores, window.keys)[:size]
        ranking = partial(_candidate_list, recording, window, replica, places, setting.k)
        fetched = replica.refresh(ranking, truth, window.keys, budget, window.close)
        ranked = ranking()
        best = replica.best(ranked)
        keys = ranked.keys[best]
        true = recording.score(window.streamed, window.remote)[: setting.k]
        yield ReplayOutcome(
            measure(keys.tolist(), window.keys.tolist(), setting.k, setting.depth),
            fetched,
            np.array_equal(recording.score(ranked.streamed[best], replica.values[keys]), true),
        )


def _candidate_list(
    recording: RecordedReplay,
    window: RecordedWindow,
    replica: SimulatedReplica,
    places: CandidatePlaces,
    k: int,
) -> CandidateList:
    """Return the objects of a window at `places`, best first by the replica's present values."""
    keys = window.keys[places]
    scores = recording.score(window.streamed[places], replica.values[keys])
    places = places[_best_first(scores, keys)]
    keys, streamed = window.keys[places], window.streamed[places]
    values = streamed.astype(np.float64)
    return CandidateList(keys, values, streamed, keys, recording.score, k, recording.step)


def _best_first(scores: Floats, keys: Integers) -> CandidatePlaces:
    """Return places by score; ties go to the larger key, as in the oracle's ranking."""
    return np.lexsort((-keys, -scores))


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
