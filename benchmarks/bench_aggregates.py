"""Top-k aggregates over windows: time per arrival and per answer, against recomputing the window.

Keys are skewed: a few are frequent, many are rare. The baselines keep the raw arrivals of the
window and aggregate all of them with NumPy at each slide: `sort` groups by sorting, which works for
keys of any kind; `dense` relies on keys that are small numbers. Both also find the latest arrival
of each key, which breaks ties. Their sums depend on the order of arrivals, those of the operator do
not. The ratios compare the time of a slide: its arrivals and its answer.
"""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.windows import Pane
from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk, AggregateTopkConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.operators.aggregates.pane_partials import Function

WINDOW = 1_000_000
SLIDES = 5
K, N = 10, 10
MERGES: dict[str, np.ufunc] = {"count": np.add, "sum": np.add, "max": np.maximum}


def seconds(act: Callable[[], object]) -> float:
    """Return the wall time of a call."""
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def best(keys: np.ndarray, latest: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return the k best keys, best first."""
    border = np.partition(totals, len(totals) - K)[-K]
    near = np.flatnonzero(totals >= border)
    return keys[near[np.lexsort((keys[near], latest[near], totals[near]))[::-1][:K]]]


def by_sorting(function: str, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the k best keys of a window by sorting its arrivals."""
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    column = np.ones(len(keys)) if function == "count" else values[order]
    totals = MERGES[function].reduceat(column, starts)
    return best(ordered[starts], np.maximum.reduceat(order, starts), totals)


def by_counting(function: str, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the k best keys of a window by arrays that are indexed by key."""
    if function == "max":
        totals = np.full(int(keys.max()) + 1, -np.inf)
        np.maximum.at(totals, keys, values)
    else:
        totals = np.bincount(keys, None if function == "count" else values)
    latest = np.zeros(len(totals), dtype=np.int64)
    latest[keys] = np.arange(len(keys))
    return best(np.arange(len(totals)), latest, totals)


def measure(function: Function, panes: int, distinct: int) -> str:
    """Return a row: the times of the operator, and the ratios of the baselines."""
    slide = WINDOW // panes
    draw = np.random.default_rng(3)
    total = WINDOW + SLIDES * slide
    keys = (draw.pareto(0.5, total) * 10 % distinct).astype(np.int64)
    values, places = draw.random(total) * 100, np.arange(total)
    operator = AggregateTopk(AggregateTopkConfig(K, N, function))
    times: dict[str, list[float]] = {"arrive": [], "close": [], "list": [], "sort": [], "dense": []}
    for pane in range(panes + SLIDES):
        new = slice(pane * slide, (pane + 1) * slide)
        windows = Pane(max(0, pane - panes + 1), pane)
        batch = partial(operator.arrive, windows, keys[new], places[new], values[new])
        times["arrive"].append(seconds(batch))
        if (window := pane - panes + 1) < 0:
            continue
        content = slice(window * slide, window * slide + WINDOW)
        arrivals = keys[content], values[content]
        times["sort"].append(seconds(partial(by_sorting, function, *arrivals)))
        times["dense"].append(seconds(partial(by_counting, function, *arrivals)))
        times["close"].append(seconds(partial(operator.close, window)))
        times["list"].append(seconds(partial(len, operator)))
    middle = {name: median(taken) for name, taken in times.items()}
    step = middle["arrive"] + middle["close"]
    return (
        f"{function:>6} {panes:6,} {distinct:8,} {middle['arrive'] / slide * 1e9:7.0f} ns"
        f" {middle['close'] * 1e3:8.1f} ms {middle['list'] * 1e3:8.1f} ms"
        f" {middle['sort'] / step:8.1f} x {middle['dense'] / step:8.1f} x"
    )


if __name__ == "__main__":
    print(f"Aggregates, a window of {WINDOW:,} arrivals, k = {K}, n = {N}")
    print("        panes     keys   arrival    a close     a list  sort anew dense anew")
    for panes in (10, 100):
        for distinct in (1_000, 100_000):
            print(measure("count", panes, distinct))
            print(measure("sum", panes, distinct))
            print(measure("max", panes, distinct))
