"""Top-k over incomplete streams: EAA against recomputing each window, and items kept.

All operators get the same observations, in slides of 1 % of the window, and return the k best
objects after each. The baselines recompute each window, and get it in their preferred form: a list
for the Python dict, arrays for NumPy, and dense keys for `bincount`. A ratio is measured in one
run, between operators that take turns of some slides each; it is the median of five turns, in CPU
time. Each ratio is printed with its bar, and whether it held.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section
6.
"""

from __future__ import annotations

import time
from heapq import nlargest
from itertools import islice
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.experiments.datasets.incomplete import (
    PAPER_COUNTS,
    observed,
    of_the_paper,
    panes,
    stored_counts,
)
from rsp_engine.operators.incomplete.eaa import EAA
from rsp_engine.operators.incomplete.observations import IncompleteOperatorConfig
from rsp_engine.operators.incomplete.sla import SLA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rsp_engine.experiments.datasets.incomplete import Observed
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.operators.incomplete.observations import IncompleteOperator

D, K, RHO = 3, 10, 0.5
SIZES = (10_000, 100_000)
TURNS, TURN = 5, 30  # the number of turns, and of slides in a turn
DICT = {10_000: 5, 100_000: 30}  # the bar by W: at least this many times as fast as the dict
KEPT = 0.45  # the bar for items kept, as a share of W = 10K
SEEDS = (0, 1, 2)


def by_dict(keys: list[int], values: list[float]) -> list[int]:
    """Return the best of a window, summed in a dictionary."""
    scores: dict[int, float] = {}
    for key, value in zip(keys, values, strict=True):
        scores[key] = scores.get(key, 0.0) + value
    return [key for key, _ in nlargest(K, scores.items(), key=itemgetter(1))]


def by_unique(keys: Integers, values: Floats) -> list[int]:
    """Return the best of a window, summed by sorting its keys."""
    objects, places = np.unique(keys, return_inverse=True)
    scores = np.bincount(places, weights=values)
    best = np.argpartition(scores, len(scores) - K)[-K:]
    ranking: list[int] = objects[best[np.argsort(-scores[best])]].tolist()
    return ranking


def by_bincount(keys: Integers, values: Floats) -> list[int]:
    """Return the best of a window, summed by key; the keys must be dense."""
    low = int(keys.min())
    scores = np.bincount(keys - low, weights=values)
    best = np.argpartition(scores, len(scores) - K)[-K:]
    ranking: list[int] = (best[np.argsort(-scores[best])] + low).tolist()
    return ranking


def recomputed(
    stream: Observed, size: int, add_up: Callable[[Integers, Floats], list[int]]
) -> Iterator[list[int]]:
    """Yield the best of each window, recomputed from arrays."""
    for start in range(size // 100, len(stream.keys) - size + 1, size // 100):
        yield add_up(stream.keys[start : start + size], stream.values[start : start + size])


def recomputed_from_lists(stream: Observed, size: int) -> Iterator[list[int]]:
    """Yield the best of each window by `by_dict`; converting arrays to lists is not measured."""
    keys, values = stream.keys.tolist(), stream.values.tolist()
    for start in range(size // 100, len(keys) - size + 1, size // 100):
        yield by_dict(keys[start : start + size], values[start : start + size])


def sliding(stream: Observed, size: int, operator: IncompleteOperator) -> Iterator[list[int]]:
    """Yield the best of each full window, from an operator."""
    for number, (pane, batch) in enumerate(panes(size, size // 100, stream)):
        operator.arrive(pane, batch)
        ranking = operator.close(number)
        if number >= 100:
            yield ranking.keys.tolist()


def in_turns(acts: Mapping[str, Iterator[list[int]]]) -> dict[str, float]:
    """Slide all in turns, and return the median time of a slide of each, in ms."""
    times: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(TURNS):
        answers = []
        for name, act in acts.items():
            start = time.process_time()
            answers.append(list(islice(act, TURN)))
            times[name].append((time.process_time() - start) / TURN * 1e3)
        assert all(answer == answers[0] for answer in answers), "the answers differ"
    return {name: median(of_turns) for name, of_turns in times.items()}


def with_bar(ratio: float, bar: float | None) -> str:
    """Return a ratio with its bar, and whether it held."""
    if bar is None:
        return f"{ratio:7.2f}x"
    return f"{ratio:7.2f}x (bar >= {bar}: {'held' if ratio >= bar else 'MISSED'})"


def against_others(size: int) -> None:
    """Measure EAA and the baselines on windows of a size."""
    stream = observed(size + (1 + TURNS * TURN) * (size // 100), D, RHO)
    config = IncompleteOperatorConfig(K, (1.0,) * D)
    eaa = EAA(config)
    acts = {
        "EAA": sliding(stream, size, eaa),
        "a Python dict": recomputed_from_lists(stream, size),
        "numpy.unique": recomputed(stream, size, by_unique),
        "dense bincount": recomputed(stream, size, by_bincount),
        "SLA": sliding(stream, size, SLA(config)),
    }
    first = [next(act) for act in acts.values()]  # fills the window
    assert all(answer == first[0] for answer in first), "the answers differ"
    times = in_turns(acts)
    ours = times.pop("EAA")
    print(
        f"  W = {size:6}, slide {size // 100}: EAA {ours:.2f} ms a slide, {len(eaa)} instances kept"
    )
    for name, others in times.items():
        bar = DICT[size] if name == "a Python dict" else 1 if name == "numpy.unique" else None
        print(f"    {name + ' / EAA':22}{with_bar(others / ours, bar)}")


def items_kept() -> None:
    """Print the number of items kept, beside the paper's."""
    for size in PAPER_COUNTS:
        print(f"Items kept: 2 streams, k = 10, uniform values, C = 100, W = {size} (SLA keeps all)")
        for tenths in range(1, 10):
            rho = tenths / 10
            counts = stored_counts(size, 2, rho, SEEDS)
            bar = 1.1 * of_the_paper(size, rho)
            holds = counts.approximate <= bar and counts.precision >= 0.8
            verdict = "no bar" if tenths == 1 else "held" if holds else "MISSED"
            print(
                f"  rho = {rho}: EAA {counts.eaa:5.0f}; approximate {counts.approximate:4.0f}"
                f" (bar <= {bar:.0f}), precision {counts.precision:.2f} (bar >= 0.8): {verdict}"
            )
    print(f"Items kept: 3 streams, k = 10, rho = {RHO}")
    for size in (500, 1000, 2000, 5000, 10_000):
        counts = stored_counts(size, 3, RHO)
        share = counts.eaa / size
        verdict = ""
        if size == SIZES[0]:
            verdict = f" (bar <= {KEPT}: {'held' if share <= KEPT else 'MISSED'})"
        print(
            f"  W = {size:5}: EAA {counts.eaa:5.0f}, {share:.2f} W{verdict}; approximate"
            f" {counts.approximate:4.0f}, precision {counts.precision:.2f}"
        )


def main() -> None:
    """Print all ratios."""
    print(f"A slide of the window: d = {D}, k = {K}, rho = {RHO}")
    for size in SIZES:
        against_others(size)
    items_kept()


if __name__ == "__main__":
    main()
