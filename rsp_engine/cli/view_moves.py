"""Rank changes: how the rows of a ranked answer moved since the previous answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.model.answers import Solutions
from rsp_engine.model.display import is_measure

if TYPE_CHECKING:
    from collections.abc import Hashable

    from rsp_engine.model.answers import Answer, Row

__all__ = ["identities", "moves"]


def moves(answer: Answer, before: Answer | None) -> list[int | None]:
    """Return for each row how many ranks it has risen, or None if it is new.

    >>> from pyoxigraph import Literal, NamedNode
    >>> from rsp_engine.model.answers import Answer, Interval, Row
    >>> def answer(*names):
    ...     user = [NamedNode(f"http://e/{name}") for name in names]
    ...     rows = [Row({"user": u, "n": Literal(9 - i)}, i + 1) for i, u in enumerate(user)]
    ...     return Answer("q", Interval(0, 1), Solutions(("user", "n"), tuple(rows), True), {})
    >>> moves(answer("a", "b", "c"), answer("b", "a", "d"))
    [1, -1, None]
    """
    previous = {} if before is None else dict(_ranks(before))
    return [None if key not in previous else previous[key] - rank for key, rank in _ranks(answer)]


def _ranks(answer: Answer) -> list[tuple[Hashable, int]]:
    content = answer.content
    if not isinstance(content, Solutions):
        return []
    ranks = (row.rank or number for number, row in enumerate(content.rows, 1))
    return list(zip(identities(content), ranks, strict=True))


def identities(content: Solutions) -> list[Hashable]:
    """Return the identity of each row: its terms without numbers and times.

    If these do not distinguish the rows, all terms do.
    """
    names = [_names(row) for row in content.rows]
    if len(set(names)) == len(names) and all(names):
        return list(names)
    return [frozenset(row.bindings.items()) for row in content.rows]


def _names(row: Row) -> frozenset[tuple[str, Hashable]]:
    return frozenset((name, term) for name, term in row.bindings.items() if not is_measure(term))
