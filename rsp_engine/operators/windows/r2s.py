"""R2S: what of an answer leaves the query (RSP-QL; Arasu, Babu, Widom: CQL, VLDB Journal 15(2)).

RSTREAM gives all rows, ISTREAM those that the answer before did not have, DSTREAM those of the
answer before that this one does not have. Rows are a bag: of three equal rows, one may be new.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

__all__ = ["R2S", "StreamOperator", "bag_difference"]

R2S = Literal["RSTREAM", "ISTREAM", "DSTREAM"]
Row = TypeVar("Row")


def bag_difference(
    rows: Sequence[Row], others: Sequence[Row], key: Callable[[Row], Hashable]
) -> list[Row]:
    """Return the rows that are left when each of the others takes an equal one away.

    >>> bag_difference(["a", "b", "a", "c"], ["a", "d"], key=str)
    ['b', 'a', 'c']
    """
    taken = Counter(map(key, others))
    left = []
    for row in rows:
        identity = key(row)
        if taken[identity] > 0:
            taken[identity] -= 1
        else:
            left.append(row)
    return left


class StreamOperator:
    """Remembers the answer before, if the kind of stream asks for it."""

    def __init__(self, kind: R2S) -> None:
        self.kind = kind
        self._before: Sequence[object] = ()

    def apply(self, rows: Sequence[Row], key: Callable[[Row], Hashable]) -> Sequence[Row]:
        """Return what leaves the query, given the answer of this evaluation."""
        if self.kind == "RSTREAM":
            return rows
        before: Sequence[Row] = self._before  # type: ignore[assignment]
        self._before = rows
        new, old = (rows, before) if self.kind == "ISTREAM" else (before, rows)
        return bag_difference(new, old, key)

    def state(self, write: Callable[[Sequence[Any]], Any]) -> Any:  # noqa: ANN401 - plain data
        """Return the answer before, as plain data that `write` makes of its rows."""
        return write(self._before)

    def restore(self, state: Any, read: Callable[[Any], Sequence[object]]) -> None:  # noqa: ANN401
        """Take the answer before back."""
        self._before = read(state)
