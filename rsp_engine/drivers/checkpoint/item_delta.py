"""The difference of two lists: which items of the old one the new one copies, and what is new.

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
ItemDelta = list[list[Any]]
"""A copy is where it starts and ends in the old list; what is new is a list in a list."""


def item_delta(old: Sequence[Any], new: Sequence[Any]) -> ItemDelta:
    """Return what makes the new list of the old one."""
    # What tells items apart: 1 from 1.0, and -0.0 from 0.0; but NaN is what it is.
    before, after = [*map(repr, old)], [*map(repr, new)]
    parts: ItemDelta = []
    for place, found in enumerate(_found(before, after)):
        last = parts[-1] if parts else [[]]
        if found is None and isinstance(last[0], list):
            last[0].append(new[place])
            if not parts:
                parts.append(last)
        elif found is None:
            parts.append([[new[place]]])
        elif not isinstance(last[0], list) and last[1] == found:
            last[1] = found + 1
        else:
            parts.append([found, found + 1])
    return parts


def _found(old: Sequence[str], new: Sequence[str]) -> Iterator[int | None]:
    """Yield for each item of the new list where it is in the old one, if it is."""
    known: dict[str, int] | None = None
    after = 0  # items mostly follow each other as they did
    for place, text in enumerate(new):
        if after < len(old) and old[after] == text:
            yield after
            after += 1
            continue
        if len(old) == len(new) and old[place] == text:
            yield place
            after = place + 1
            continue
        if known is None:
            known = {each: n for n, each in reversed([*enumerate(old)])}
        found = known.get(text)
        # An item of a short text is not copied alone: to say where it is would be as long.
        if found is not None and (len(text) > _SHORT or _go_on(old, found, new, place)):
            after = found + 1
        else:
            found = None
            after += 1  # it may stand for what was there
        yield found


def _go_on(old: Sequence[str], at: int, new: Sequence[str], place: int) -> bool:
    """Tell whether the same items follow."""
    following = slice(place + 1, place + 3)
    return len(new) > place + 2 and old[at + 1 : at + 3] == new[following]


def patched_items(old: Sequence[Any], parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the new list."""
    made: list[Any] = []
    for part in parts:
        if isinstance(part[0], list):
            made += part[0]
            continue
        start, end = part
        if not 0 <= start <= end <= len(old):
            raise ValueError("an item is copied that is not there")
        made += old[start:end]
    return made
