"""S-AVL: the meaningful objects of a partition, in stacks with an index of their tops.

Objects are pushed from the latest to the earliest. Each of the first starts a stack of its own. Any
other goes onto the stack with the largest top that is smaller than it, which preserves the order of
the stacks. If there is no such stack, every top is better and later, so all of them dominate the
object, and it is discarded. In a stack each object is better and older than the one below.

    30   31   36        three stacks, after 30, 31 and 36
    30   34   36        34 goes onto 31, the largest top below it
         31
    30   35   36        35 goes onto 34; 29 would be discarded
         34
         31

The paper keeps the tops in an AVL tree. There are at most k of them, and most accesses are to the
best, so a sorted list with binary search replaces the tree here.

Zhu, Wang, Yang, Zheng, Wang: SAP: improving continuous top-k queries over streaming data. IEEE
TKDE 29(6), 2017, section 5.1.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rsp_engine.operators.sap.rank_tuples import Entry

__all__ = ["StackIndex"]


class StackIndex:
    """An S-AVL of at most `stacks` stacks. Time to push or to pop: O(log k) comparisons."""

    def __init__(self, stacks: int) -> None:
        self._most = stacks
        self._tops: list[Entry] = []
        self._stacks: list[list[Entry]] = []  # in the order of their tops
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, entry: Entry) -> bool:
        """Push an object that does not outlive earlier ones; return whether it is kept.

        >>> index = StackIndex(1)
        >>> index.push((5.0, 9, 1, 3)), index.push((4.0, 8, 2, 3)), index.push((6.0, 7, 3, 3))
        (True, False, True)
        >>> index.stacks()
        [[(5.0, 9, 1, 3), (6.0, 7, 3, 3)]]
        """
        place = bisect_left(self._tops, entry)
        if len(self._tops) < self._most:
            self._tops.insert(place, entry)
            self._stacks.insert(place, [entry])
        elif place:
            self._tops[place - 1] = entry
            self._stacks[place - 1].append(entry)
        else:
            return False
        self._size += 1
        return True

    @property
    def least(self) -> Entry | None:
        """The entry that an object must exceed to be kept; None while there are free stacks."""
        return self._tops[0] if len(self._tops) == self._most else None

    def best(self) -> Entry | None:
        """Return the best object, or None."""
        return self._tops[-1] if self._tops else None

    def pop(self) -> Entry:
        """Remove the best object and return it."""
        entry, stack = self._tops.pop(), self._stacks.pop()
        stack.pop()
        if stack:
            place = bisect_left(self._tops, stack[-1])
            self._tops.insert(place, stack[-1])
            self._stacks.insert(place, stack)
        self._size -= 1
        return entry

    def stacks(self) -> list[list[Entry]]:
        """Return the stacks in the order of their tops, each from the bottom up."""
        return list(map(list, self._stacks))

    def check(self) -> None:
        """Assert the invariants of the stacks."""
        assert self._tops == sorted(self._tops), "the tops are in order"  # noqa: S101
        assert len(self._tops) <= self._most, "there are no more stacks than allowed"  # noqa: S101
        assert self._size == sum(map(len, self._stacks)), "the size is right"  # noqa: S101
        for top, stack in zip(self._tops, self._stacks, strict=True):
            assert top == stack[-1], "the index has the top"  # noqa: S101
            for below, above in pairwise(stack):
                assert below < above, "the upper one is better"  # noqa: S101
                assert below[3] >= above[3], "the upper one is older"  # noqa: S101
