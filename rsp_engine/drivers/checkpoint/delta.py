"""Deltas of texts and of lists: the ranges of the old one that the new one copies, and what is new.

Texts are cut into content-defined chunks, as backup programs cut files: an insertion or a removal
moves no other cut, and chunks of the old text are found anywhere in the new one.

>>> old = b",".join(b"%d" % number for number in range(1000, 9000))
>>> new = old.replace(b"1500", b"15000").replace(b",7000", b"")
>>> delta = text_delta(old, new)
>>> len(str(delta)) < 100, patched_text(old, delta) == new
(True, True)

Lists are compared item by item.

>>> items, later = [*range(100)], [*range(5), "x", *range(6, 50), *range(60, 100), "y"]
>>> item_delta(items, later)
[[0, 5], [['x']], [6, 50], [60, 100], [['y']]]
>>> patched_items(items, item_delta(items, later)) == later
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["TextDelta", "item_delta", "patched_items", "patched_text", "text_delta"]

ItemDelta = list[list[Any]]
"""Parts: a copy is its start and end in the old list; new items are a list in a list."""
TextDelta = list[list[int] | str]
"""Parts: a copy is its start and end in the old text; a string is new text."""

_SHORT = 12
"""An item with a text of at most this many characters is not copied alone: its range is as long."""
_FEW = 128
"""Fewer bytes than these between the common start and end are new: chunks would not pay."""
_WINDOW = 32
"""How many bytes the hash covers that ends a chunk."""
_SHIFT = np.uint32(24)  # one byte in 256 ends a chunk
_SLAB = 1 << 22
"""How many bytes are hashed at a time, which bounds the memory."""
_LONGEST = 4096
"""The longest chunk, in bytes."""
_GEAR = np.random.default_rng(7).integers(0, 1 << 32, 256, dtype=np.uint32)
"""The random number of each byte in the gear hash."""


def text_delta(old: bytes, new: bytes) -> TextDelta:
    """Return the delta from the old text to the new one; both are ASCII."""
    begin = _common(old, new)
    end = min(_common_end(old, new), len(old) - begin, len(new) - begin)
    middle = new[begin : len(new) - end]
    parts: list[_Part] = [(0, begin)]
    if min(len(middle), len(old) - begin - end) < _FEW:
        parts.append(middle)
    else:
        parts += _chunk_delta(old, begin, len(old) - end, middle)
    parts.append((len(old) - end, len(old)))
    return _as_data(_trim(old, _join(parts)))


def patched_text(old: bytes, parts: Sequence[Sequence[int] | str]) -> bytes:
    """Return the old text with a delta applied; raise ValueError if it does not fit."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part.encode("ascii"))
            continue
        start, end = part
        if not 0 <= start <= end <= len(old):
            raise ValueError("a part is copied that is not there")
        texts.append(old[start:end])
    return b"".join(texts)


_Part = tuple[int, int] | bytes


def _chunk_delta(old: bytes, start: int, end: int, new: bytes) -> Iterator[_Part]:
    """Yield the chunks of a new text, as copies where a range of the old one has them."""
    known: dict[bytes, int] = {}
    at = start
    for chunk in _chunks(old[start:end]):
        known.setdefault(chunk, at)
        at += len(chunk)
    after = start  # the end of the previous copy: equal chunks are copied in order
    for chunk in _chunks(new):
        if old.startswith(chunk, after, end):
            yield after, after + len(chunk)
            after += len(chunk)
        elif chunk in known:
            after = known[chunk] + len(chunk)
            yield known[chunk], after
        else:
            after += len(chunk)  # a new value is often as long as the old one
            yield chunk


def _chunks(text: bytes) -> Iterator[bytes]:
    start = 0
    for cut in (*_cuts(text), len(text)):
        # In repetitive text no hash may end a chunk.
        yield from (text[at : min(at + _LONGEST, cut)] for at in range(start, cut, _LONGEST))
        start = cut


def _cuts(text: bytes) -> Iterator[int]:
    """Yield the ends of chunks: where the hash of the last bytes is one of the few that cut."""
    whole = np.frombuffer(text, dtype=np.uint8)
    for start in range(0, len(whole), _SLAB):
        before = min(start, _WINDOW)
        hashes = _rolling(whole[start - before : start + _SLAB])[before:]
        yield from (np.flatnonzero((hashes >> _SHIFT) == 0) + start + 1).tolist()


def _rolling(text: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return for each byte the gear hash of the window that ends with it."""
    hashes: NDArray[np.uint32] = _GEAR[text]
    width = 1
    while width < _WINDOW:
        shifted = hashes[:-width] << np.uint32(width)
        hashes = hashes.copy()
        hashes[width:] += shifted
        width *= 2
    return hashes


def _join(parts: Sequence[_Part]) -> list[_Part]:
    """Join adjacent parts, and drop empty ones."""
    joined: list[_Part] = []
    new: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            new.append(part)
            continue
        start, end = part
        if start == end:
            continue
        if text := b"".join(new):
            joined.append(text)
        new = []
        last = joined[-1] if joined else b""
        if isinstance(last, tuple) and last[1] == start:
            joined[-1] = last[0], end
        else:
            joined.append(part)
    if text := b"".join(new):
        joined.append(text)
    return joined


def _trim(old: bytes, parts: list[_Part]) -> list[_Part]:
    """Extend copies into the new text beside them, as far as it equals the old one."""
    for index, part in enumerate(parts):
        if not isinstance(part, bytes):
            continue
        new = part
        before = parts[index - 1] if index else b""
        if isinstance(before, tuple):
            count = _common(old[before[1] : before[1] + len(new)], new)
            parts[index - 1] = before[0], before[1] + count
            new = new[count:]
        after = parts[index + 1] if index + 1 < len(parts) else b""
        if isinstance(after, tuple):
            count = _common_end(old[max(0, after[0] - len(new)) : after[0]], new)
            parts[index + 1] = after[0] - count, after[1]
            new = new[: len(new) - count]
        parts[index] = new
    return _join(parts)


def _as_data(parts: Sequence[_Part]) -> TextDelta:
    return [part.decode("ascii") if isinstance(part, bytes) else [*part] for part in parts]


def _common(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix of two texts."""
    return _first_difference(one[: len(other)], other[: len(one)])


def _common_end(one: bytes, other: bytes) -> int:
    """Return the length of the common suffix of two texts."""
    size = min(len(one), len(other))
    if not size:
        return 0
    arrays = [np.frombuffer(text, dtype=np.uint8)[-size:][::-1] for text in (one, other)]
    return _first_of(arrays)


def _first_difference(one: bytes, other: bytes) -> int:
    return _first_of([np.frombuffer(text, dtype=np.uint8) for text in (one, other)])


def _first_of(arrays: Sequence[NDArray[np.uint8]]) -> int:
    """Return the first index at which two arrays of one length differ; it is mostly a small one."""
    one, other = arrays
    start, size = 0, 256
    while start < len(one):
        differ = one[start : start + size] != other[start : start + size]
        if differ.any():
            return start + int(differ.argmax())
        start, size = start + size, 2 * size
    return len(one)


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
