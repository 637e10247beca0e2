"""The invariants of SAP, checked by brute force against the stored window.

They cut across all parts of the operator, so they are not in any one of them. Tests assert them
after each step, through `Sap._check`.
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING

from rsp_engine.operators.sap.meaningful_set import is_superseded
from rsp_engine.operators.sap.partition_size import slides_of_unit

if TYPE_CHECKING:
    from rsp_engine.operators.sap.partition import Partition
    from rsp_engine.operators.sap.rank_tuples import Entry
    from rsp_engine.operators.sap.sap import Sap

__all__ = ["bound", "check_sap"]


def bound(n: float, s: float, k: int) -> float:
    """Return an upper bound of candidates and meaningful objects with equal partitions.

    This is the O(k sqrt(n / max(s, k))) of the paper. With r for the root there are m* <= r + 1
    partitions; up to 1.5 times as many since their sizes are rounded down to whole slides, or twice
    as many of one slide each. Two more are open or slide out. P_0 keeps at most r k objects, and
    none if it is one slide. So there are at most (1.5 (r + 1) + 2) k + r k, or (2 (r + 1) + 1) k;
    both are below 3 k (r + 1), unless n < k and nothing is pruned.

    >>> bound(100_000, 1, 100) / 100
    97.86...
    """
    return 3 * k * (sqrt(n / max(s, k)) + 1)


def check_sap(sap: Sap) -> None:
    """Assert all invariants, after a window has closed."""
    window, k, open_partition = sap._buffer.closed, sap.config.k, sap._open
    stored = sap._stored()
    live = sorted(e for partition in stored for e in _live(sap, partition, window))
    assert sap._answer == live[-k:], "the answer holds the best"  # noqa: S101
    assert sap._keys.tolist() == [e[2] for e in live[-k:][::-1]], "the answer is returned"  # noqa: S101
    assert len({e[2] for e in live}) == len(live), "live keys are unique"  # noqa: S101
    for earlier, later in pairwise(partition for partition in stored if partition.ends):
        assert earlier.last <= later.first, "partitions follow each other"  # noqa: S101
        assert list(earlier.ends) == sorted(earlier.ends), "panes follow each other"  # noqa: S101
    _check_candidates(sap, live)
    best = sorted(_live(sap, open_partition.partition, window))[-k:]
    assert open_partition.best == best, "P_m^k has the best of P_m"  # noqa: S101
    for partition in sap._partitions:
        _check_dominance(sap, partition, live)
    if sap._partitions:
        _check_front(sap, sap._partitions[0], live)
    if sap.config.partitioning == "equal":
        _check_bound(sap)


def _live(sap: Sap, partition: Partition, window: int) -> list[Entry]:
    objects, ends = partition.live(window, sap._rearrivals.latest)
    keys, positions, scores = (column.tolist() for column in objects)
    return list(zip(scores, positions, keys, ends.tolist(), strict=True))


def _dominators(entry: Entry, live: list[Entry]) -> int:
    return sum(other > entry and other[3] >= entry[3] for other in live)


def _check_candidates(sap: Sap, live: list[Entry]) -> None:
    candidates, window = sap._candidates, sap._buffer.closed
    assert candidates.entries == sorted(set(candidates.entries)), "C is in order"  # noqa: S101
    for entry, counted in zip(candidates.entries, candidates.dominated, strict=True):
        if entry[3] >= window:
            assert entry in live, "candidates are in the window"  # noqa: S101
            assert counted < sap.config.k, "dominated ones are removed"  # noqa: S101
            assert counted <= _dominators(entry, live), "no count is too large"  # noqa: S101


def _check_dominance(sap: Sap, partition: Partition, live: list[Entry]) -> None:
    """Assert that rho and F_theta count only later objects."""
    if partition.border is not None:
        rho, theta = sap.pruning(partition)
        better = sum(e > partition.border and e[3] >= partition.last for e in live)
        assert min(rho, sap.config.k) <= better, "rho counts later, better ones"  # noqa: S101
        if theta is not None:
            above = sum(e >= theta and e[3] >= partition.last for e in live)
            assert above >= sap.config.k, "k later ones reach F_theta"  # noqa: S101


def _check_front(sap: Sap, front: Partition, live: list[Entry]) -> None:
    """Assert Lemma 1: objects of P_0 that can enter the answer are in C or M_0."""
    window, meaningful = sap._buffer.closed, sap._meaningful
    if meaningful is None:
        assert front.first >= window, "P_0 does not slide out yet"  # noqa: S101
        return
    meaningful.check()
    assert meaningful.partition is front, "M_0 is that of P_0"  # noqa: S101
    assert meaningful.is_complete, "M_0 is formed when P_0 slides out"  # noqa: S101
    kept = {*meaningful.entries(), *sap._candidates.entries}
    latest = sap._rearrivals.latest
    for entry in meaningful.entries():
        is_stale = entry[3] < window or (latest is not None and is_superseded(entry, latest))
        assert is_stale or entry in live, "M_0 is in the window"  # noqa: S101
    waiting = {entry for unit in meaningful.waiting() for entry in unit}
    for entry in _live(sap, front, window):
        if entry not in kept and entry[1:3] not in waiting:
            assert _dominators(entry, live) >= sap.config.k, "no other is needed"  # noqa: S101


def _check_bound(sap: Sap) -> None:
    """Assert the bound of section 4.1, if no slide has more than s objects."""
    config, stored = sap.config, sap._stored()
    panes = [b - a for p in stored for a, b in pairwise([*p.starts, len(p)])]
    if config.s is not None and max(panes, default=0) <= config.s and not sap._had_late:
        n = config.slides * config.s
        assert len(sap) <= bound(n, config.s, config.k), "C and M_0 are small"  # noqa: S101
        unit = slides_of_unit(config.slides, config.s, config.k)
        assert all(len(p.ends) <= unit for p in stored), "partitions are equal"  # noqa: S101
