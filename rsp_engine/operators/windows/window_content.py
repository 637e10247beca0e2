"""The content of a window as a set, maintained part by part.

Windows overlap, so the parts that two windows share are not processed again. An item is in the
content as long as at least one part holds it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

__all__ = ["WindowContent"]

T = TypeVar("T")


class WindowContent(Generic[T]):
    """A set that is the union of parts. Time of a change: the parts that enter and leave.

    >>> content = WindowContent[str]()
    >>> content.add("first", ["a", "b"]), content.add("second", ["b", "c"])
    (['a', 'b'], ['c'])
    >>> content.remove("first"), len(content)
    (['a'], 2)
    """

    def __init__(self) -> None:
        self._parts: dict[Hashable, list[T]] = {}
        self._counts: dict[T, int] = {}  # the number of parts that hold an item

    def __len__(self) -> int:
        return len(self._counts)

    def __iter__(self) -> Iterator[T]:
        """Iterate over the parts in the order of their arrival; an item may be in several."""
        return chain.from_iterable(self._parts.values())

    def coming(self, keys: Iterable[Hashable]) -> list[Hashable]:
        """Return those keys that are not yet part of the content."""
        return [key for key in keys if key not in self._parts]

    def going(self, keys: Iterable[Hashable]) -> list[Hashable]:
        """Return the keys of the content that are not among these."""
        kept = set(keys)
        return [key for key in self._parts if key not in kept]

    def add(self, key: Hashable, items: Iterable[T]) -> list[T]:
        """Add a part, and return the items that are new to the content."""
        part = list(dict.fromkeys(items))
        counts = self._counts
        new = [item for item in part if item not in counts]
        for item in part:
            counts[item] = counts.get(item, 0) + 1
        self._parts[key] = part
        return new

    def remove(self, key: Hashable) -> list[T]:
        """Remove a part, and return the items that left the content."""
        gone, counts = [], self._counts
        for item in self._parts.pop(key):
            if counts[item] == 1:
                del counts[item]
                gone.append(item)
            else:
                counts[item] -= 1
        return gone
