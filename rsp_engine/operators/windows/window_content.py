"""The content of a window as a set, kept up to date part by part.

Windows overlap, so what two contents share is not looked at again. A thing is in the content as
long as one part holds it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

__all__ = ["WindowContent"]

T = TypeVar("T")


class WindowContent(Generic[T]):
    """A set that is the union of parts. Cost of a change: the parts that come and go.

    >>> content = WindowContent[str]()
    >>> content.add("first", ["a", "b"]), content.add("second", ["b", "c"])
    (['a', 'b'], ['c'])
    >>> content.remove("first"), len(content)
    (['a'], 2)
    """

    def __init__(self) -> None:
        self._parts: dict[Hashable, list[T]] = {}
        self._holders: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def __iter__(self) -> Iterator[T]:
        """Go through the parts, in the order in which they came; a thing may be in several."""
        return chain.from_iterable(self._parts.values())

    def coming(self, wanted: Iterable[Hashable]) -> list[Hashable]:
        """Return the parts of a content that are not there yet."""
        return [key for key in wanted if key not in self._parts]

    def going(self, wanted: Iterable[Hashable]) -> list[Hashable]:
        """Return the parts that a content does not have any more."""
        kept = set(wanted)
        return [key for key in self._parts if key not in kept]

    def add(self, key: Hashable, things: Iterable[T]) -> list[T]:
        """Add a part, and return what was not in the content before."""
        part = list(dict.fromkeys(things))
        holders = self._holders
        new = [thing for thing in part if thing not in holders]
        for thing in part:
            holders[thing] = holders.get(thing, 0) + 1
        self._parts[key] = part
        return new

    def remove(self, key: Hashable) -> list[T]:
        """Remove a part, and return what is no longer in the content."""
        gone, holders = [], self._holders
        for thing in self._parts.pop(key):
            if holders[thing] == 1:
                del holders[thing]
                gone.append(thing)
            else:
                holders[thing] -= 1
        return gone
