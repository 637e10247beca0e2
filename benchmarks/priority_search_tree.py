"""A priority search tree over the K-skyband, for the k best pairs of the last n objects.

It is a heap by age, with the youngest pair in the root, and a search tree by score: pairs in the
left subtree of a node are better than those in its right subtree. So a post-order walk over the
pairs of the window meets the better pairs first, and can stop after k; only the ancestors of these
can be better.

Line 4 of Algorithm 1 must exclude p: in the paper's own example the root has the score 6 and the
median 4, and stays the root. The median of an even number is the lower one.

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
    """A node of the tree. Its pair and its `median` are indices into the pairs, best first."""

    place: int
    older: int
    median: int
    left: SearchNode | None = None
    right: SearchNode | None = None


class Walk(NamedTuple):
    """The trace of a query: indices of pairs, in the order of the visit and of the stack."""

    visited: list[int]
    stack: list[int]
    marked: list[int]
    best: list[int]


class PrioritySearchTree:
    """A static tree of pairs, best first. Time: O(n log n) to build, O(log n + k) to query."""

    def __init__(self, pairs: Pairs) -> None:
        self._older: list[int] = pairs.older.tolist()
        self.root = self._build(list(range(len(self._older))))

    def _build(self, places: list[int]) -> SearchNode | None:
        """Return the tree of some pairs, best first (Algorithm 1)."""
        if not places:
            return None
        youngest = max(places, key=self._older.__getitem__)
        half = (len(places) - 1) // 2
        node = SearchNode(youngest, self._older[youngest], places[half])
        node.right = self._build([place for place in places[half + 1 :] if place != youngest])
        node.left = self._build([place for place in places[: half + 1] if place != youngest])
        return node

    def best(self, k: int, since: int) -> list[int]:
        """Return the indices of the k best pairs whose older object is at `since` or later."""
        return self.walk(k, since).best

    def walk(self, k: int, since: int) -> Walk:
        """Return the trace of the search for the k best pairs (Algorithm 2)."""
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
        """Assert the invariants of the tree."""
        places = _check_subtree(self.root)
        assert sorted(places) == list(range(len(self._older))), "each pair has a node"


def _check_subtree(node: SearchNode | None) -> list[int]:
    """Assert the invariants of a subtree, and return the indices of its pairs."""
    if node is None:
        return []
    left, right = _check_subtree(node.left), _check_subtree(node.right)
    for child in (node.left, node.right):
        assert child is None or child.older <= node.older, "no child is younger"
    assert all(place <= node.median for place in left), "better pairs are left"
    assert all(place > node.median for place in right), "worse pairs are right"
    assert abs(len(left) - len(right)) <= 2, "the subtrees are balanced"
    return [node.place, *left, *right]
