"""C, the candidate set of SAP: the best objects of each partition that fewer than k dominate.

Each candidate carries a count of better candidates in later partitions. When a partition is full,
its best are merged in one pass, from the worst up, and candidates with k dominators leave.

    C        75   78   84   87   ...      P_5^k   86   90       k = 2
    adds     +2   +2   +2   +1            75, 78 and 84 leave: both 86 and 90 dominate them

Zhu, Wang, Yang, Zheng, Wang: SAP: improving continuous top-k queries over streaming data. IEEE
TKDE 29(6), 2017, section 3.1, function Refine.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rsp_engine.operators.sap.rank_tuples import Entry

__all__ = ["CandidateSet"]


class CandidateSet:
    """A sorted list of candidates with their dominance counts.

    Time to merge k new candidates: O(|C| + k); to find one: O(log |C|).
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self.entries: list[Entry] = []  # in ascending rank
        self.dominated: list[int] = []

    def __len__(self) -> int:
        return len(self.entries)

    def refine(self, new: list[Entry], window: int) -> None:
        """Merge the best of a partition, in ascending rank; drop dominated and expired candidates.

        >>> candidates = CandidateSet(2)
        >>> candidates.refine([(75.0, 1, 1, 9), (87.0, 2, 2, 9)], 0)
        >>> candidates.refine([(86.0, 3, 3, 9), (90.0, 4, 4, 9)], 0)
        >>> [entry[0] for entry in candidates.entries], candidates.dominated
        ([86.0, 87.0, 90.0], [0, 1, 0])
        """
        entries, dominated, place, count = [], [], 0, len(new)
        for entry, so_far in zip(self.entries, self.dominated, strict=True):
            while place < count and new[place] < entry:
                entries.append(new[place])
                dominated.append(0)
                place += 1
            dominators = so_far + count - place
            if dominators < self.k and entry[3] >= window:
                entries.append(entry)
                dominated.append(dominators)
        entries += new[place:]
        dominated += [0] * (count - place)
        self.entries, self.dominated = entries, dominated

    def below(self, entry: Entry, count: int, window: int) -> list[Entry]:
        """Return the `count` best live candidates below an entry, best first.

        Expired candidates on the way are removed.
        """
        below: list[Entry] = []
        place = bisect_left(self.entries, entry) - 1
        while place >= 0 and len(below) < count:
            if self.entries[place][3] >= window:
                below.append(self.entries[place])
            else:
                del self.entries[place], self.dominated[place]
            place -= 1
        return below

    def add(self, entry: Entry) -> None:
        """Add an object with a dominance count of 0."""
        place = bisect_left(self.entries, entry)
        self.entries.insert(place, entry)
        self.dominated.insert(place, 0)

    def discard(self, entry: Entry) -> None:
        """Remove an expired object; the candidates that it dominated expired no later."""
        place = bisect_left(self.entries, entry)
        if place < len(self.entries) and self.entries[place] == entry:
            del self.entries[place], self.dominated[place]

    def remove(self, entry: Entry) -> bool:
        """Remove an object whose key arrived again; return whether it was a candidate.

        The counts of worse candidates fall by one. Some may not have counted it; a count that is
        too small is safe.
        """
        place = bisect_left(self.entries, entry)
        if place == len(self.entries) or self.entries[place] != entry:
            return False
        del self.entries[place], self.dominated[place]
        for worse in range(place):
            if self.entries[worse][3] <= entry[3]:
                self.dominated[worse] = max(0, self.dominated[worse] - 1)
        return True

    def later_than(self, end: int) -> list[Entry]:
        """Return the candidates that live beyond an end, in ascending rank."""
        return [entry for entry in self.entries if entry[3] > end]
