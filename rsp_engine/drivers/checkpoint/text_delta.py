"""The difference of two texts: which parts of the old one the new one copies, and what is new.

Texts are cut where their content says so (content-defined chunks, as backup programs cut files),
so that what is inserted or removed moves no other cut, and chunks of the old text are found again
wherever they stand in the new one.

>>> old = b",".join(b"%d" % number for number in range(1000, 9000))
>>> new = old.replace(b"1500", b"15000").replace(b",7000", b"")
>>> found = text_delta(old, new)
>>> len(str(found)) < 100, patched_text(old, found) == new
(True, True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["TextDelta", "patched_text", "text_delta"]

TextDelta = list[list[int] | str]
"""A copy is where it starts and ends in the old text; a text is new."""

_FEW = 128
"""Where so few bytes are left between what is common, they are new."""
_WINDOW = 32
_SHIFT = np.uint32(24)  # one byte in 256 ends a chunk
_SLAB = 1 << 22
_LONGEST = 4096
_GEAR = np.random.default_rng(7).integers(0, 1 << 32, 256, dtype=np.uint32)


def text_delta(old: bytes, new: bytes) -> TextDelta:
    """Return what makes the new text of the old one; both are ASCII."""
    begin = _common(old, new)
    end = min(_common_end(old, new), len(old) - begin, len(new) - begin)
    middle = new[begin : len(new) - end]
    parts: list[_Part] = [(0, begin)]
    if min(len(middle), len(old) - begin - end) < _FEW:
        parts.append(middle)
    else:
        parts += _moved(old, begin, len(old) - end, middle)
    parts.append((len(old) - end, len(old)))
    return _written(_trimmed(old, _merged(parts)))


def patched_text(old: bytes, parts: Sequence[Sequence[int] | str]) -> bytes:
    """Return the new text."""
    made = []
    for part in parts:
        if isinstance(part, str):
            made.append(part.encode("ascii"))
            continue
        start, end = part
        if not 0 <= start <= end <= len(old):
            raise ValueError("a part is copied that is not there")
        made.append(old[start:end])
    return b"".join(made)


_Part = tuple[int, int] | bytes


def _moved(old: bytes, start: int, end: int, new: bytes) -> Iterator[_Part]:
    """Yield the chunks of a new text, as copies of an old one where they are."""
    known: dict[bytes, int] = {}
    at = start
    for chunk in _chunks(old[start:end]):
        known.setdefault(chunk, at)
        at += len(chunk)
    after = start  # where the copy before ends: equal chunks are copied in their order
    for chunk in _chunks(new):
        if old.startswith(chunk, after, end):
            yield after, after + len(chunk)
            after += len(chunk)
        elif chunk in known:
            after = known[chunk] + len(chunk)
            yield known[chunk], after
        else:
            after += len(chunk)  # what is next may be as it was: a value is often as long as before
            yield chunk


def _chunks(text: bytes) -> Iterator[bytes]:
    start = 0
    for cut in (*_cuts(text), len(text)):
        # Where the same stands again and again, no hash ends a chunk.
        yield from (text[at : min(at + _LONGEST, cut)] for at in range(start, cut, _LONGEST))
        start = cut


def _cuts(text: bytes) -> Iterator[int]:
    """Yield where chunks end: where the bytes before have a hash that few have."""
    whole = np.frombuffer(text, dtype=np.uint8)
    for start in range(0, len(whole), _SLAB):
        before = min(start, _WINDOW)
        hashes = _rolling(whole[start - before : start + _SLAB])[before:]
        yield from (np.flatnonzero((hashes >> _SHIFT) == 0) + start + 1).tolist()


def _rolling(text: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return for each byte the gear hash of the bytes that end with it."""
    hashes: NDArray[np.uint32] = _GEAR[text]
    width = 1
    while width < _WINDOW:
        more = hashes[:-width] << np.uint32(width)
        hashes = hashes.copy()
        hashes[width:] += more
        width *= 2
    return hashes


def _merged(parts: Sequence[_Part]) -> list[_Part]:
    """Return neighbours as one, and nothing that is empty."""
    found: list[_Part] = []
    new: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            new.append(part)
            continue
        start, end = part
        if start == end:
            continue
        if text := b"".join(new):
            found.append(text)
        new = []
        last = found[-1] if found else b""
        if isinstance(last, tuple) and last[1] == start:
            found[-1] = last[0], end
        else:
            found.append(part)
    if text := b"".join(new):
        found.append(text)
    return found


def _trimmed(old: bytes, parts: list[_Part]) -> list[_Part]:
    """Let copies grow into the new text beside them, as far as it is the old one."""
    for place, part in enumerate(parts):
        if not isinstance(part, bytes):
            continue
        new = part
        before = parts[place - 1] if place else b""
        if isinstance(before, tuple):
            count = _common(old[before[1] : before[1] + len(new)], new)
            parts[place - 1] = before[0], before[1] + count
            new = new[count:]
        after = parts[place + 1] if place + 1 < len(parts) else b""
        if isinstance(after, tuple):
            count = _common_end(old[max(0, after[0] - len(new)) : after[0]], new)
            parts[place + 1] = after[0] - count, after[1]
            new = new[: len(new) - count]
        parts[place] = new
    return _merged(parts)


def _written(parts: Sequence[_Part]) -> TextDelta:
    return [part.decode("ascii") if isinstance(part, bytes) else [*part] for part in parts]


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts have in common at their start."""
    return _first_difference(one[: len(other)], other[: len(one)])


def _common_end(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts have in common at their end."""
    size = min(len(one), len(other))
    if not size:
        return 0
    arrays = [np.frombuffer(text, dtype=np.uint8)[-size:][::-1] for text in (one, other)]
    return _first_of(arrays)


def _first_difference(one: bytes, other: bytes) -> int:
    return _first_of([np.frombuffer(text, dtype=np.uint8) for text in (one, other)])


def _first_of(arrays: Sequence[NDArray[np.uint8]]) -> int:
    """Return where two arrays of one length differ first; mostly that is near the start."""
    one, other = arrays
    start, size = 0, 256
    while start < len(one):
        differ = one[start : start + size] != other[start : start + size]
        if differ.any():
            return start + int(differ.argmax())
        start, size = start + size, 2 * size
    return len(one)
