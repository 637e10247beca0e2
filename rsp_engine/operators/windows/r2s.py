"""R2S: the rows that a query emits (RSP-QL; Arasu, Babu, Widom: CQL, VLDB Journal 15(2)).

RSTREAM emits all rows, ISTREAM the rows that the previous answer does not have, DSTREAM the rows of
the previous answer that this one does not have. Rows are a bag: one of three equal rows may be new.
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
    """Return the rows that remain after removing one equal row for each of the others.

    >>> bag_difference(["a", "b", "a", "c"], ["a", "d"], key=str)
    ['b', 'a', 'c']
    """
    removals = Counter(map(key, others))
    rest = []
    for row in rows:
        identity = key(row)
        if removals[identity] > 0:
            removals[identity] -= 1
        else:
            rest.append(row)
    return rest


class StreamOperator:
    """The R2S operator. ISTREAM and DSTREAM keep the previous answer."""

    def __init__(self, kind: R2S) -> None:
        self.kind = kind
        self._previous: Sequence[object] = ()

    def apply(self, rows: Sequence[Row], key: Callable[[Row], Hashable]) -> Sequence[Row]:
        """Return the rows to emit, given the answer of this evaluation."""
        if self.kind == "RSTREAM":
            return rows
        previous: Sequence[Row] = self._previous  # type: ignore[assignment]
        self._previous = rows
        new, old = (rows, previous) if self.kind == "ISTREAM" else (previous, rows)
        return bag_difference(new, old, key)

    def state(self, write: Callable[[Sequence[Any]], Any]) -> Any:  # noqa: ANN401 - plain data
        """Return the previous answer as plain data, converted by `write`."""
        return write(self._previous)

    def restore(self, state: Any, read: Callable[[Any], Sequence[object]]) -> None:  # noqa: ANN401
        """Restore the previous answer, converted by `read`."""
        self._previous = read(state)
