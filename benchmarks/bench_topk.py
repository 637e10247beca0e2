"""The top-k operators: time per slide against computing each window anew, and objects kept.

Scores are uniform. The list of MinTopk is expected to hold k (1 + 1/2 + ... + 1/m) objects for m
panes a window, whatever the window holds.
"""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.mintopk import MinTopk
from rsp_engine.operators.pretopk import PreTopk
from rsp_engine.operators.topk import Arrivals, TopkConfig

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW = 1_000_000
SLIDES = 12


def seconds(act: Callable[[], object]) -> float:
    """Return how long something takes."""
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def recomputed(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the places of the k best of a window, best first."""
    best = np.argpartition(scores, len(scores) - k)[len(scores) - k :]
    return best[np.argsort(-scores[best])]


def turn(operator: MinTopk | PreTopk, arrivals: Arrivals, window: int) -> None:
    """Let a window slide."""
    operator.arrive(*arrivals)
    operator.close(window)


def measure(panes: int, k: int) -> str:
    """Run both operators and the baseline over a window that slides."""
    slide = WINDOW // panes
    scores = np.random.default_rng(7).random(WINDOW + SLIDES * slide)
    places = np.arange(len(scores))
    config = TopkConfig(k, TimeFrame(WINDOW, slide, bounds="[)"))
    minimal, predicted = MinTopk(config), PreTopk(config)
    times: dict[str, list[float]] = {"minimal": [], "predicted": [], "anew": []}
    kept = []
    for window in range(SLIDES + 1):
        start = 0 if window == 0 else WINDOW + (window - 1) * slide
        new = slice(start, WINDOW + window * slide)
        fresh = Arrivals(places[new], places[new], scores[new])

        content = scores[window * slide : window * slide + WINDOW]
        times["minimal"].append(seconds(partial(turn, minimal, fresh, window)))
        if panes <= 100:
            times["predicted"].append(seconds(partial(turn, predicted, fresh, window)))
        times["anew"].append(seconds(partial(recomputed, content, k)))
        kept.append(len(minimal))
    ours, anew = median(times["minimal"][1:]), median(times["anew"][1:])
    before = median(times["predicted"][1:]) / ours if times["predicted"] else float("nan")
    expected = k * sum(1 / i for i in range(1, panes + 1))
    return (
        f"{panes:6,} {k:6,} {ours * 1e3:9.2f} ms {ours / slide * 1e9:8.0f} ns {anew / ours:9.1f} x"
        f" {before:9.1f} x {sum(kept[1:]) / SLIDES / expected:10.2f}"
    )


if __name__ == "__main__":
    print(f"MinTopk, a window of {WINDOW:,} objects")
    print(" panes      k    a slide   an object   recompute   PreTopk   kept / expected")
    for panes in (10, 100, 1000):
        for k in (10, 100, 1000):
            print(measure(panes, k))
