"""The delta of two lists: the ranges of the old one that the new one copies, and its new items.

>>> old, new = [*range(100)], [*range(5), "x", *range(6, 50), *range(60, 100), "y"]
>>> item_delta(old, new)
[[0, 5], [['x']], [6, 50], [60, 100], [['y']]]
>>> patched_items(old, item_delta(old, new)) == new
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["item_delta", "patched_items"]

_SHORT = 12
"""An item with a text of at most this many characters is not copied alone: its range is as long."""
ItemDelta = list[list[Any]]
"""Parts: a copy is its start and end in the old list; new items are a list in a list."""


def item_delta(old: Sequence[Any], new: Sequence[Any]) -> ItemDelta:
    """Return the delta from the old list to the new one."""
    # Compared by repr, which distinguishes 1 from 1.0 and -0.0 from 0.0, and equates NaN with NaN.
    before, after = [*map(repr, old)], [*map(repr, new)]
    parts: ItemDelta = []
    for index, origin in enumerate(_origins(before, after)):
        last = parts[-1] if parts else [[]]
        if origin is None and isinstance(last[0], list):
            last[0].append(new[index])
            if not parts:
                parts.append(last)
        elif origin is None:
            parts.append([[new[index]]])
        elif not isinstance(last[0], list) and last[1] == origin:
            last[1] = origin + 1
        else:
            parts.append([origin, origin + 1])
    return parts


def _origins(old: Sequence[str], new: Sequence[str]) -> Iterator[int | None]:
    """Yield for each item of the new list its index in the old one, or None if it is new."""
    known: dict[str, int] | None = None
    after = 0  # items mostly follow each other as before
    for index, text in enumerate(new):
        if after < len(old) and old[after] == text:
            yield after
            after += 1
            continue
        if len(old) == len(new) and old[index] == text:
            yield index
            after = index + 1
            continue
        if known is None:
            known = {each: n for n, each in reversed([*enumerate(old)])}
        origin = known.get(text)
        if origin is not None and (len(text) > _SHORT or _continues(old, origin, new, index)):
            after = origin + 1
        else:
            origin = None
            after += 1  # it may replace the old item
        yield origin


def _continues(old: Sequence[str], at: int, new: Sequence[str], index: int) -> bool:
    """Return whether the next two items are the same."""
    following = slice(index + 1, index + 3)
    return len(new) > index + 2 and old[at + 1 : at + 3] == new[following]


def patched_items(old: Sequence[Any], parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the old list with a delta applied; raise ValueError if it does not fit."""
    items: list[Any] = []
    for part in parts:
        if isinstance(part[0], list):
            items += part[0]
            continue
        start, end = part
        if not 0 <= start <= end <= len(old):
            raise ValueError("an item is copied that is not there")
        items += old[start:end]
    return items
