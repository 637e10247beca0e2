"""A priority search tree over the K-skyband: the k best pairs of the last n objects.

It is a heap by age, with the youngest pair in the root, and a search tree by score: whatever hangs
on the left of a node is better than what hangs on its right. So a walk in post-order over the pairs
of the window comes upon good ones first, and it can stop after k; only the ancestors of these can
be better.

Of Algorithm 1, line 4 must leave out p: in the paper's own example the root has the score 6 and the
median 4, and stays the root. The median is the lower one of two.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section IV.A, Algorithms 1 and 2. (McCreight: Priority search trees. SIAM J. Comput. 14(2), 1985.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rsp_engine.operators.pairs.pairs import Pairs

__all__ = ["PrioritySearchTree", "SearchNode", "Walk"]


@dataclass(slots=True)
class SearchNode:
    """A pair, by its place among all pairs, best first; `median` is a place as well."""

    place: int
    older: int
    median: int
    left: SearchNode | None = None
    right: SearchNode | None = None


class Walk(NamedTuple):
    """What a query came upon: places of pairs, in the order of visiting and of the stack."""

    visited: list[int]
    stack: list[int]
    marked: list[int]
    best: list[int]


class PrioritySearchTree:
    """Made of pairs that come best first. Time: O(n log n) to build, O(log n + k) to ask."""

    def __init__(self, pairs: Pairs) -> None:
        self._older: list[int] = pairs.older.tolist()
        self.root = self._made(list(range(len(self._older))))

    def _made(self, places: list[int]) -> SearchNode | None:
        """Return the tree of some pairs, best first (Algorithm 1)."""
        if not places:
            return None
        youngest = max(places, key=self._older.__getitem__)
        half = (len(places) - 1) // 2
        node = SearchNode(youngest, self._older[youngest], places[half])
        node.right = self._made([place for place in places[half + 1 :] if place != youngest])
        node.left = self._made([place for place in places[: half + 1] if place != youngest])
        return node

    def best(self, k: int, since: int) -> list[int]:
        """Return the places of the k best pairs whose older object came at a position or later."""
        return self.walk(k, since).best

    def walk(self, k: int, since: int) -> Walk:
        """Return how the k best are found (Algorithm 2)."""
        visited: list[int] = []
        stack: list[SearchNode] = []
        marked: set[int] = set()
        if self.root is not None and self.root.older >= since:
            stack.append(self.root)
        while len(visited) < k and stack:
            node = stack[-1]
            if node.place in marked or (node.left is None and node.right is None):
                visited.append(node.place)
                stack.pop()
                continue
            marked.add(node.place)
            if node.right is not None and node.right.older >= since:
                stack.append(node.right)
            if node.left is not None and node.left.older >= since:
                stack.append(node.left)
        waiting = [node.place for node in stack]
        ancestors = [place for place in waiting if place in marked]
        return Walk(visited, waiting, ancestors, sorted([*visited, *ancestors])[:k])

    def _check(self) -> None:
        """Assert what always holds."""
        places = _checked(self.root)
        assert sorted(places) == list(range(len(self._older))), "each pair has a node"  # noqa: S101


def _checked(node: SearchNode | None) -> list[int]:
    if node is None:
        return []
    left, right = _checked(node.left), _checked(node.right)
    for child in (node.left, node.right):
        assert child is None or child.older <= node.older, "no child is younger"  # noqa: S101
    assert all(place <= node.median for place in left), "the better ones are left"  # noqa: S101
    assert all(place > node.median for place in right), "the worse ones are right"  # noqa: S101
    assert abs(len(left) - len(right)) <= 2, "both sides are of a size"  # noqa: S101
    return [node.place, *left, *right]
