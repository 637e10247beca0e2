"""Who moved: the rows of a ranked answer beside those of the answer before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.cli.view_format import is_measure
from rsp_engine.model.answers import Solutions

if TYPE_CHECKING:
    from collections.abc import Hashable

    from rsp_engine.model.answers import Answer, Row

__all__ = ["identities", "moves"]


def moves(answer: Answer, before: Answer | None) -> list[int | None]:
    """Return for each row how many places it has risen, or nothing if it is new.

    >>> from pyoxigraph import Literal, NamedNode
    >>> from rsp_engine.model.answers import Answer, Interval, Row
    >>> def made(*names):
    ...     user = [NamedNode(f"http://e/{name}") for name in names]
    ...     rows = [Row({"user": u, "n": Literal(9 - i)}, i + 1) for i, u in enumerate(user)]
    ...     return Answer("q", Interval(0, 1), Solutions(("user", "n"), tuple(rows), True), {})
    >>> moves(made("a", "b", "c"), made("b", "a", "d"))
    [1, -1, None]
    """
    now = _ranks(answer)
    then = {} if before is None else dict(_ranks(before))
    return [None if who not in then else then[who] - rank for who, rank in now]


def _ranks(answer: Answer) -> list[tuple[Hashable, int]]:
    content = answer.content
    if not isinstance(content, Solutions):
        return []
    who = identities(content)
    ranks = (row.rank or place for place, row in enumerate(content.rows, 1))
    return list(zip(who, ranks, strict=True))


def identities(content: Solutions) -> list[Hashable]:
    """Return who each row is about: the terms that say neither how much nor when.

    Where these do not tell the rows apart, all terms do.
    """
    found = [_names(row) for row in content.rows]
    if len(set(found)) == len(found) and all(found):
        return list(found)
    return [frozenset(row.bindings.items()) for row in content.rows]


def _names(row: Row) -> frozenset[tuple[str, Hashable]]:
    return frozenset((name, term) for name, term in row.bindings.items() if not is_measure(term))
