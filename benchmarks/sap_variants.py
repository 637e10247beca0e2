"""The variants of SAP's Table 2: Algorithm 1 over m equal partitions, with and without its parts.

    Algorithm 1 + S-AVL    M_0 is formed from P_0 when P_0 starts to slide out, in an S-AVL
    Algorithm 1            M_0 is the k-skyband of P_0 - P_0^k, in one sorted list, formed then
    non-delay              M_i is formed like this as soon as P_i is complete, for each i

The sorted list counts the dominators of an object among the later ones, without F_theta and without
the amortised formation of M_1, which the paper introduces with the S-AVL. The paper skips the
details of non-delay: since nothing has arrived after P_i when M_i is formed, rho is 0 there.

Zhu, Wang, Yang, Zheng, Wang: SAP: improving continuous top-k queries over streaming data. IEEE
TKDE 29(6), 2017, section 6.2, Table 2.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from rsp_engine.operators.sap.meaningful_set import MeaningfulSet
from rsp_engine.operators.sap.sap import Sap, SapConfig
from rsp_engine.operators.sap.stack_index import StackIndex

if TYPE_CHECKING:
    from rsp_engine.operators.sap.partition import LatestObjects, Partition
    from rsp_engine.operators.sap.rank_tuples import Entry

__all__ = ["Algorithm1", "EqualPartitions", "NonDelay"]


class EqualPartitions(Sap):
    """Algorithm 1 with the S-AVL, over m equal partitions."""

    def __init__(self, k: int, slides: int, s: int | None, m: int) -> None:
        self._unit = max(1, slides // m)
        super().__init__(SapConfig(k, slides, s, "equal"))

    def _slides(self) -> int:
        return self._unit

    def _check(self) -> None:
        """Assert nothing: the bound on the candidates is that of m*."""


class SortedSkyband(StackIndex):
    """The k-skyband of objects pushed from the latest to the earliest, in one sorted list."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._sorted: list[Entry] = []

    def __len__(self) -> int:
        return len(self._sorted)

    def push(self, entry: Entry) -> bool:
        """Insert an object unless as many later objects as allowed are better."""
        place = bisect_left(self._sorted, entry)
        if len(self._sorted) - place >= self._most:
            return False
        self._sorted.insert(place, entry)
        return True

    @property
    def least(self) -> Entry | None:
        """There is no bound below which objects need not be read."""
        return None

    def best(self) -> Entry | None:
        """Return the best object, or None."""
        return self._sorted[-1] if self._sorted else None

    def pop(self) -> Entry:
        """Remove the best object and return it."""
        return self._sorted.pop()


class SkybandOfPartition(MeaningfulSet):
    """M_i as the k-skyband of all objects of the partition but its best."""

    def __init__(self, partition: Partition, allowed: int, k: int) -> None:
        super().__init__(partition, allowed, k)
        self._indexes = [SortedSkyband(max(allowed, 1))]

    def form(self, count: int, theta: Entry | None, latest: LatestObjects | None) -> None:
        """Read all objects, without F_theta."""
        super().form(len(self.partition), None, latest)


class Algorithm1(EqualPartitions):
    """Algorithm 1 without the S-AVL."""

    def _form(self, front: Partition, window: int) -> None:
        if self._meaningful is None:
            rho, _ = self.pruning(front)
            self._meaningful = self._formed(front, self.config.k - rho)

    def _form_next(self, window: int) -> None:
        """Form nothing ahead."""

    def _formed(self, partition: Partition, allowed: int) -> MeaningfulSet:
        meaningful = SkybandOfPartition(partition, allowed, self.config.k)
        meaningful.form(len(partition), None, self._rearrivals.latest)
        return meaningful


class NonDelay(Algorithm1):
    """Algorithm 1 without the delay: M_i is formed with P_i."""

    def __init__(self, k: int, slides: int, s: int | None, m: int) -> None:
        self._formed_early: dict[int, MeaningfulSet] = {}
        super().__init__(k, slides, s, m)

    def _complete(self, partition: Partition, window: int) -> None:
        super()._complete(partition, window)
        self._formed_early[id(partition)] = self._formed(partition, self.config.k)

    def _form(self, front: Partition, window: int) -> None:
        if self._meaningful is None:
            self._meaningful = self._formed_early.pop(id(front))
