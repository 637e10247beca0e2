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

    def part(self, key: Hashable) -> list[T]:
        """Return the items of a part."""
        return self._parts[key]

    def coming(self, keys: Iterable[Hashable]) -> list[Hashable]:
        """Return those keys that are not yet part of the content."""
        return [key for key in keys if key not in self._parts]

    def going(self, keys: Iterable[Hashable]) -> list[Hashable]:
        """Return the keys of the content that are not among these."""
        kept = set(keys)
        return [key for key in self._parts if key not in kept]

    def add(self, key: Hashable, items: Iterable[T]) -> list[T]:
        """Add a part, and return the items that are new to the content."""
        ones, counts = dict.fromkeys(items, 1), self._counts
        part = self._parts[key] = list(ones)
        repeated = counts.keys() & ones.keys()
        new = [item for item in part if item not in repeated] if repeated else part
        counts.update(dict.fromkeys(new, 1))
        for item in repeated:
            counts[item] += 1
        return new

    def remove(self, key: Hashable) -> list[T]:
        """Remove a part, and return the items that left the content."""
        part, counts = self._parts.pop(key), self._counts
        before = list(map(counts.pop, part))
        if sum(before) == len(part):
            return part
        kept = {item: count - 1 for item, count in zip(part, before, strict=True) if count > 1}
        counts.update(kept)
        return [item for item in part if item not in kept]
