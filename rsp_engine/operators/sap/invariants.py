"""What always holds of SAP, looked up in the stored window object by object."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING

from rsp_engine.operators.sap.meaningful_set import is_superseded
from rsp_engine.operators.sap.partition_size import slides_of_unit

if TYPE_CHECKING:
    from rsp_engine.operators.sap.partition import Partition
    from rsp_engine.operators.sap.sap import Sap
    from rsp_engine.operators.topk.rank_tuples import Entry

__all__ = ["bound", "check_sap"]


def bound(n: float, s: float, k: int) -> float:
    """Return how many objects are candidates or meaningful at most, under equal partitions.

    This is the O(k sqrt(n / max(s, k))) of the paper. With r for the root there are m* <= r + 1
    partitions, or half as many more since they are cut to whole slides, or twice as many of one
    slide each; two more are being filled and slide out. P_0 has at most r k objects to keep, and
    none if it is one slide. So there are no more than (1.5 (r + 1) + 2) k + r k, or (2 (r + 1) + 1)
    k, and both are below 3 k (r + 1), unless n < k and nothing is left out.

    >>> bound(100_000, 1, 100) / 100
    97.86...
    """
    return 3 * k * (sqrt(n / max(s, k)) + 1)


def check_sap(sap: Sap) -> None:
    """Assert it all, after a window has closed."""
    window, k, filling = sap._buffer.closed, sap.config.k, sap._filling
    stored = sap._stored()
    live = sorted(e for partition in stored for e in _live(sap, partition, window))
    assert sap._answer == live[-k:], "the answer holds the best"  # noqa: S101
    assert sap._keys.tolist() == [e[2] for e in live[-k:][::-1]], "it is given out"  # noqa: S101
    assert len({e[2] for e in live}) == len(live), "a key lives once"  # noqa: S101
    for earlier, later in pairwise(partition for partition in stored if partition.ends):
        assert earlier.last <= later.first, "partitions follow each other"  # noqa: S101
        assert list(earlier.ends) == sorted(earlier.ends), "and so do their panes"  # noqa: S101
    _check_candidates(sap, live)
    best = sorted(_live(sap, filling.partition, window))[-k:]
    assert filling.best == best, "P_m^k holds the best of what fills"  # noqa: S101
    for partition in sap._partitions:
        _check_dominance(sap, partition, live)
    if sap._partitions:
        _check_front(sap, sap._partitions[0], live)
    if sap.config.partitioning == "equal":
        _check_bound(sap)


def _live(sap: Sap, partition: Partition, window: int) -> list[Entry]:
    found, ends = partition.live(window, sap._renewals.latest)
    keys, positions, scores = (column.tolist() for column in found)
    return list(zip(scores, positions, keys, ends.tolist(), strict=True))


def _dominators(entry: Entry, live: list[Entry]) -> int:
    return sum(other > entry and other[3] >= entry[3] for other in live)


def _check_candidates(sap: Sap, live: list[Entry]) -> None:
    candidates, window = sap._candidates, sap._buffer.closed
    assert candidates.entries == sorted(set(candidates.entries)), "C is in order"  # noqa: S101
    for entry, counted in zip(candidates.entries, candidates.dominated, strict=True):
        if entry[3] >= window:
            assert entry in live, "candidates are in the window"  # noqa: S101
            assert counted < sap.config.k, "the dominated have left"  # noqa: S101
            assert counted <= _dominators(entry, live), "none counts too much"  # noqa: S101


def _check_dominance(sap: Sap, partition: Partition, live: list[Entry]) -> None:
    """Assert that rho and F_theta are those of objects that come later."""
    if partition.border is not None:
        rho, theta = sap.pruning(partition)
        better = sum(e > partition.border and e[3] >= partition.last for e in live)
        assert min(rho, sap.config.k) <= better, "rho counts later, better ones"  # noqa: S101
        if theta is not None:
            above = sum(e >= theta and e[3] >= partition.last for e in live)
            assert above >= sap.config.k, "k later ones reach F_theta"  # noqa: S101


def _check_front(sap: Sap, front: Partition, live: list[Entry]) -> None:
    """Assert Lemma 1: what can be needed of P_0 now is a candidate or meaningful."""
    window, meaningful = sap._buffer.closed, sap._meaningful
    if meaningful is None:
        assert front.first >= window, "P_0 does not slide out yet"  # noqa: S101
        return
    meaningful.check()
    assert meaningful.partition is front, "M_0 is that of P_0"  # noqa: S101
    assert meaningful.is_complete, "M_0 is formed when P_0 slides out"  # noqa: S101
    kept = {*meaningful.entries(), *sap._candidates.entries}
    latest = sap._renewals.latest
    for entry in meaningful.entries():
        gone = entry[3] < window or (latest is not None and is_superseded(entry, latest))
        assert gone or entry in live, "M_0 is in the window"  # noqa: S101
    waiting = {entry for unit in meaningful.waiting() for entry in unit}
    for entry in _live(sap, front, window):
        if entry not in kept and entry[1:3] not in waiting:
            assert _dominators(entry, live) >= sap.config.k, "no other is needed"  # noqa: S101


def _check_bound(sap: Sap) -> None:
    """Assert the bound of section 4.1, where slides hold as many objects as was said."""
    config, stored = sap.config, sap._stored()
    panes = [b - a for p in stored for a, b in pairwise([*p.starts, len(p)])]
    if config.s is not None and max(panes, default=0) <= config.s and not sap._had_late:
        n = config.slides * config.s
        assert len(sap) <= bound(n, config.s, config.k), "C and M_0 are small"  # noqa: S101
        unit = slides_of_unit(config.slides, config.s, config.k)
        assert all(len(p.ends) <= unit for p in stored), "partitions are equal"  # noqa: S101
