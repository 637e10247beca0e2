"""Top-k over incomplete streams: EAA against adding up each window anew, and what operators keep.

All see the same observations, a slide of 1 % of the window at a time, and give the k best objects
after each. Who adds up anew is given the window as it likes it best: a list for the Python dict,
arrays for NumPy, and for `bincount` keys that are dense. A ratio is measured in one run, between
operators that take turns, of some slides each; of five turns the median counts, and time is that of
the processor. Beside a ratio stands its bar, and whether it held.

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
TURNS, TURN = 5, 30  # so many turns, of so many slides
DICT = {10_000: 5, 100_000: 30}  # at least so many times as fast
KEPT = 0.45  # of W = 10K, at most
SEEDS = (0, 1, 2)


def by_dict(keys: list[int], values: list[float]) -> list[int]:
    """Add up a window in a dictionary."""
    scores: dict[int, float] = {}
    for key, value in zip(keys, values, strict=True):
        scores[key] = scores.get(key, 0.0) + value
    return [key for key, _ in nlargest(K, scores.items(), key=itemgetter(1))]


def by_unique(keys: Integers, values: Floats) -> list[int]:
    """Add up a window by sorting its keys."""
    objects, places = np.unique(keys, return_inverse=True)
    scores = np.bincount(places, weights=values)
    best = np.argpartition(scores, len(scores) - K)[-K:]
    found: list[int] = objects[best[np.argsort(-scores[best])]].tolist()
    return found


def by_bincount(keys: Integers, values: Floats) -> list[int]:
    """Add up a window whose keys are dense: as many as objects, or nearly."""
    low = int(keys.min())
    scores = np.bincount(keys - low, weights=values)
    best = np.argpartition(scores, len(scores) - K)[-K:]
    found: list[int] = (best[np.argsort(-scores[best])] + low).tolist()
    return found


def anew(
    found: Observed, size: int, add_up: Callable[[Integers, Floats], list[int]]
) -> Iterator[list[int]]:
    """Yield the best of each window, added up anew."""
    for start in range(size // 100, len(found.keys) - size + 1, size // 100):
        yield add_up(found.keys[start : start + size], found.values[start : start + size])


def listed(found: Observed, size: int) -> Iterator[list[int]]:
    """Yield the best of each window, from lists: what is not arrays is not made from them here."""
    keys, values = found.keys.tolist(), found.values.tolist()
    for start in range(size // 100, len(keys) - size + 1, size // 100):
        yield by_dict(keys[start : start + size], values[start : start + size])


def sliding(found: Observed, size: int, operator: IncompleteOperator) -> Iterator[list[int]]:
    """Yield the best of each window that is full, from an operator."""
    for number, (pane, batch) in enumerate(panes(size, size // 100, found)):
        operator.arrive(pane, batch)
        ranking = operator.close(number)
        if number >= 100:
            yield ranking.keys.tolist()


def in_turns(acts: Mapping[str, Iterator[list[int]]]) -> dict[str, float]:
    """Let all slide in turns, some slides each; return the median time of a slide, in ms."""
    times: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(TURNS):
        answers = []
        for name, act in acts.items():
            began = time.process_time()
            answers.append(list(islice(act, TURN)))
            times[name].append((time.process_time() - began) / TURN * 1e3)
        assert all(answer == answers[0] for answer in answers), "all give the same"
    return {name: median(taken) for name, taken in times.items()}


def said(ratio: float, bar: float | None) -> str:
    """Return a ratio, its bar, and whether it held."""
    if bar is None:
        return f"{ratio:7.2f}x"
    return f"{ratio:7.2f}x (bar >= {bar}: {'held' if ratio >= bar else 'MISSED'})"


def against_others(size: int) -> None:
    """Measure EAA and those who add up anew on windows of a size."""
    found = observed(size + (1 + TURNS * TURN) * (size // 100), D, RHO)
    config = IncompleteOperatorConfig(K, (1.0,) * D)
    eaa = EAA(config)
    acts = {
        "EAA": sliding(found, size, eaa),
        "a Python dict": listed(found, size),
        "numpy.unique": anew(found, size, by_unique),
        "dense bincount": anew(found, size, by_bincount),
        "SLA": sliding(found, size, SLA(config)),
    }
    first = [next(act) for act in acts.values()]  # fills the window
    assert all(answer == first[0] for answer in first), "all give the same"
    times = in_turns(acts)
    ours = times.pop("EAA")
    print(
        f"  W = {size:6}, slide {size // 100}: EAA {ours:.2f} ms a slide, {len(eaa)} instances kept"
    )
    for name, taken in times.items():
        bar = DICT[size] if name == "a Python dict" else 1 if name == "numpy.unique" else None
        print(f"    {name + ' / EAA':22}{said(taken / ours, bar)}")


def items_kept() -> None:
    """Print what is kept, beside the paper."""
    for size in PAPER_COUNTS:
        print(f"Items kept: 2 streams, k = 10, uniform values, C = 100, W = {size} (SLA keeps all)")
        for tenths in range(1, 10):
            rho = tenths / 10
            here = stored_counts(size, 2, rho, SEEDS)
            bar = 1.1 * of_the_paper(size, rho)
            holds = here.approximate <= bar and here.precision >= 0.8
            verdict = "no bar" if tenths == 1 else "held" if holds else "MISSED"
            print(
                f"  rho = {rho}: EAA {here.eaa:5.0f}; approximate {here.approximate:4.0f}"
                f" (bar <= {bar:.0f}), precision {here.precision:.2f} (bar >= 0.8): {verdict}"
            )
    print(f"Items kept: 3 streams, k = 10, rho = {RHO}")
    for size in (500, 1000, 2000, 5000, 10_000):
        here = stored_counts(size, 3, RHO)
        share = here.eaa / size
        verdict = ""
        if size == SIZES[0]:
            verdict = f" (bar <= {KEPT}: {'held' if share <= KEPT else 'MISSED'})"
        print(
            f"  W = {size:5}: EAA {here.eaa:5.0f}, {share:.2f} W{verdict}; approximate"
            f" {here.approximate:4.0f}, precision {here.precision:.2f}"
        )


def main() -> None:
    """Print all ratios."""
    print(f"A slide of the window: d = {D}, k = {K}, rho = {RHO}")
    for size in SIZES:
        against_others(size)
    items_kept()


if __name__ == "__main__":
    main()
