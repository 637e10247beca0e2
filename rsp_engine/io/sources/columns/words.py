"""Fields of a text, compared and parsed eight bytes at a time, for all lines at once.

A word is the eight bytes at any position, as a little-endian integer: its first character is the
lowest byte. One gather reads the words of all lines, so a field of 30 bytes costs four of them.

>>> words = Words(b"<http://example.org/17> <http://example.org/2017>")
>>> words.equal(np.array([0, 24]), b"<http://example.org/17>").tolist()
[True, False]
>>> [column.tolist() for column in words.trailing_digits(np.array([22, 48]))]
[[17, 2017], [2, 4]]
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Integers

    Unsigned = NDArray[np.uint64]

__all__ = ["LONGEST_NUMBER", "WIDTH", "Words", "mixed"]

WIDTH = 8
"""The bytes of a word."""
_LONG = 32 * WIDTH  # longer fields are few: they are searched one by one
_BITS = 8 * WIDTH
LONGEST_NUMBER = 18
"""Most digits of an integer that fit into 64 bits, whatever they are."""


def _all_bytes(byte: int) -> np.uint64:
    """Return a word of eight equal bytes."""
    return np.uint64(int.from_bytes(bytes([byte]) * WIDTH, "little"))


_ZEROS, _LOW7, _HIGH = _all_bytes(ord("0")), _all_bytes(0x7F), _all_bytes(0x80)
_UNDERSCORES, _HASHES, _LOWER = _all_bytes(ord("_")), _all_bytes(ord("#")), _all_bytes(0x20)
# Ranges of bytes of 7 bits: what sets the high bit of a byte in or behind them, when added to it.
_DIGITS, _LETTERS = (
    (_all_bytes(0x80 - ord(first)), _all_bytes(0x7F - ord(last)))
    for first, last in ("-9", "az")  # `-./` precede the digits
)
_PLAIN = string.ascii_letters.encode() + b"-./0123456789_"
_ABOVE_NINE = _all_bytes(0x80 - 10)  # added to a byte of 7 bits, it sets the high bit from 10 on
# By the number of bytes to keep, which are the high ones: a mask.
_KEPT = np.array([2**_BITS - 2 ** (_BITS - 8 * count) for count in range(WIDTH + 1)], np.uint64)
# The steps that join neighbouring digits, then pairs, then fours: mask, factor, shift.
_JOINS = tuple(
    (np.uint64(mask), np.uint64(factor), np.uint64(shift))
    for mask, factor, shift in (
        (0x0F0F0F0F0F0F0F0F, 10 * 2**8 + 1, 8),
        (0x00FF00FF00FF00FF, 100 * 2**16 + 1, 16),
        (0x0000FFFF0000FFFF, 10_000 * 2**32 + 1, 32),
    )
)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_FOLD = np.uint64(29)


def mixed(columns: Iterable[Unsigned]) -> Unsigned:
    """Return a hash of each row of some columns."""
    hashes: Unsigned = np.zeros(1, dtype=np.uint64)
    for column in columns:
        hashes = (hashes ^ (hashes >> _FOLD) ^ column) * _MIX
    return hashes


class Words:
    """The words of a text of at least eight bytes."""

    def __init__(self, data: bytes) -> None:
        self.bytes = np.frombuffer(data, dtype=np.uint8)
        self._words: Unsigned = np.ndarray(
            shape=(len(data) - WIDTH + 1,), dtype="<u8", buffer=data, strides=(1,)
        )

    def at(self, places: Integers) -> Unsigned:
        """Return the words that begin at some places; near the end of the text, the last word."""
        try:
            return self._words[places]
        except IndexError:
            return self._words[np.minimum(places, len(self._words) - 1)]

    def equal(self, places: Integers, wanted: bytes) -> Booleans:
        """Return at which places the text goes on with some bytes, of which the last is not NUL."""
        last = len(self.bytes) - len(wanted)
        if last < 0:
            return np.zeros(len(places), dtype=np.bool_)
        if (places > last).any():
            return self.equal(np.minimum(places, last), wanted) & (places <= last)
        fields = self._fields(places, len(wanted))
        if fields.tobytes() == wanted * len(places):  # much cheaper than a comparison by row
            return np.ones(len(places), dtype=np.bool_)
        are_equal = _end_as(fields, wanted)
        rows = np.flatnonzero(are_equal)
        if (near := fields[rows]).tobytes() != wanted * len(rows):
            are_equal[rows] = near.view(f"S{len(wanted)}") == wanted
        return are_equal

    def _fields(self, places: Integers, size: int) -> NDArray[np.void]:
        """Return as many bytes from each place on."""
        shape = (len(self.bytes) - size + 1,)
        text: NDArray[np.void] = np.ndarray(shape, f"V{size}", self.bytes, strides=(1,))
        return text[places]

    def digits(self, ends: Integers, counts: Integers) -> tuple[Integers, Booleans]:
        """Return the numbers of some digits before `ends`, and which of them are digits only.

        There are at most 18 digits, and 24 bytes or more before the end of those above 8.
        """
        numbers = np.zeros(len(ends), dtype=np.int64)
        are_digits = np.ones(len(ends), dtype=np.bool_)
        for before in range(0, int(counts.max(initial=0)), WIDTH):
            # Bytes that do not belong to the number are the low ones: they become leading zeros.
            kept = _KEPT[np.clip(counts - before, 0, WIDTH)]
            digits = (self.at(np.maximum(ends - before - WIDTH, 0)) ^ _ZEROS) & kept
            are_digits &= _non_digits(digits) == 0
            for mask, factor, bits in _JOINS:
                digits = ((digits & mask) * factor) >> bits
            numbers += digits.astype(np.int64) * 10**before
        return numbers, are_digits

    def trailing_digits(self, ends: Integers) -> tuple[Integers, Integers]:
        """Return the numbers that end before `ends`, and how many digits each has, up to 19.

        A number of 19 digits is not valid.
        """
        counts = np.zeros(len(ends), dtype=np.int64)
        for before in range(0, LONGEST_NUMBER + 1, WIDTH):
            words = self.at(np.maximum(ends - before - WIDTH, 0)) ^ _ZEROS
            # The highest byte that is not a digit stops the count; 53 bits are enough to find it.
            exponents = np.frexp(_non_digits(words).astype(np.float64))[1]
            more = WIDTH - exponents // 8
            counts = np.where(counts == before, counts + more, counts)
            if not (counts == before + WIDTH).any():
                break
        counts = np.minimum(counts, LONGEST_NUMBER + 1)
        return self.digits(ends, np.minimum(counts, LONGEST_NUMBER))[0], counts

    def plain(self, starts: Integers, ends: Integers) -> tuple[Booleans, Booleans]:
        """Return which fields have only letters, digits and `._/-#`, and which have a `#`.

        There are at least eight bytes before each field.
        """
        sizes = ends - starts
        are_plain: Booleans = sizes >= 0
        have_hash = np.zeros(len(starts), dtype=np.bool_)
        longest = int(sizes.max(initial=0))
        if not longest or self._are_plain_before(ends, longest):
            return are_plain, have_hash
        rows: Integers | slice = slice(None)
        for before in range(0, longest, WIDTH):
            if before:
                rows = np.flatnonzero(sizes > before)
            kept = _KEPT[np.clip(sizes[rows] - before, 0, WIDTH)]
            # Bytes that do not belong to the field become zeros.
            words = (self.at(np.maximum(ends[rows] - before - WIDTH, 0)) ^ _ZEROS) & kept
            if not _non_digits(words).any():
                continue
            words ^= _ZEROS
            hashes = _equal_to(words, _HASHES)
            have_hash[rows] |= hashes != 0
            are_plain[rows] &= _non_plain(words) == hashes
        return are_plain, have_hash

    def _are_plain_before(self, ends: Integers, size: int) -> bool:
        """Return whether there are only letters, digits and `._/-` in so many bytes before `ends`.

        They may begin before a shorter field: mostly with a part of the same path.
        """
        if size > _LONG or int(ends.min()) < size:
            return False
        return not self._fields(ends - size, size).tobytes().translate(None, _PLAIN)

    def contain(self, starts: Integers, ends: Integers, wanted: bytes) -> Booleans:
        """Return which fields contain any of some characters, of which none is NUL.

        There are at least eight bytes before each field.
        """
        sizes = ends - starts
        found = np.zeros(len(starts), dtype=np.bool_)
        rows: Integers | slice = slice(None)
        for before in range(0, min(int(sizes.max(initial=0)), _LONG), WIDTH):
            if before:
                rows = np.flatnonzero(sizes > before)
            kept = _KEPT[np.clip(sizes[rows] - before, 0, WIDTH)]
            words = self.at(np.maximum(ends[rows] - before - WIDTH, 0)) & kept
            for byte in wanted:
                found[rows] |= _equal_to(words, _all_bytes(byte)) != 0
        for row in np.flatnonzero(sizes > _LONG).tolist():
            field = self.bytes[starts[row] : ends[row]].tobytes()
            found[row] = any(byte in field for byte in wanted)
        return found

    def fields(self, starts: Integers, ends: Integers) -> Iterator[Unsigned]:
        """Yield words that, with their lengths, tell apart fields, as in `codes`.

        Words that all fields have in common are left out.
        """
        for offset in range(0, int((ends - starts).max(initial=0)), WIDTH):
            words = self.at(np.maximum(np.minimum(starts + offset, ends - WIDTH), 0))
            if (words != words[0]).any():
                yield words

    def differ_from_last(self, starts: Integers, ends: Integers, places: Integers) -> Booleans:
        """Return which of the fields at some places, above 0, differ from the field before."""
        sizes = ends - starts
        size = int(sizes[0])
        if (sizes == size).all():
            here, last = (self._fields(starts[at], size) for at in (places, places - 1))
            if here.tobytes() == last.tobytes():
                return np.zeros(len(places), dtype=np.bool_)
        differ: Booleans = sizes[places] != sizes[places - 1]
        for words in self.fields(starts, ends):
            differ |= words[places] != words[places - 1]
        for number in np.flatnonzero(sizes[places] < WIDTH).tolist():
            place = places[number]
            short, other = (self.bytes[starts[at] : ends[at]] for at in (place, place - 1))
            differ[number] = not np.array_equal(short, other)
        return differ

    def codes(self, starts: Integers, ends: Integers) -> tuple[Integers, Integers]:
        """Return the number of each distinct field, and an example of each.

        A field has at least eight bytes, or follows eight bytes that are the same before all
        fields. Fields are told apart by a hash, and then compared with the one that has the same
        number.
        """
        if not len(starts):
            return starts, starts
        sizes = (ends - starts).astype(np.uint64)
        if int(sizes.max()) < WIDTH:  # the size and the bytes of a field are its number
            shifts = np.uint64(_BITS) - 8 * sizes
            return _codes(sizes << np.uint64(_BITS - 8) | self.at(ends - WIDTH) >> shifts)
        columns = [sizes, *self.fields(starts, ends)]
        codes, firsts = _codes(mixed(columns))
        if all((words == words[firsts][codes]).all() for words in columns):
            return codes, firsts
        return _codes_of([*zip(*(words.tolist() for words in columns), strict=True)])


def _codes(numbers: Unsigned) -> tuple[Integers, Integers]:
    """Return the code of each distinct number, and an example of each."""
    order = np.argsort(numbers)
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = numbers[order[1:]] != numbers[order[:-1]]
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.cumsum(is_first) - 1
    return codes, order[is_first]


def _codes_of(fields: list[tuple[int, ...]]) -> tuple[Integers, Integers]:
    """Return numbers of distinct fields, one by one, for the rare case of equal hashes."""
    numbers: dict[tuple[int, ...], int] = {}
    codes = [numbers.setdefault(field, len(numbers)) for field in fields]
    firsts = {code: place for place, code in reversed([*enumerate(codes)])}
    return np.array(codes, dtype=np.int64), np.array([firsts[code] for code in range(len(numbers))])


def _end_as(fields: NDArray[np.void], wanted: bytes) -> Booleans:
    """Return which fields end with the last word of some bytes, if these have one."""
    size = len(wanted)
    if size < WIDTH:
        return np.ones(len(fields), dtype=np.bool_)
    words: Unsigned = np.ndarray((len(fields),), "<u8", fields, size - WIDTH, (size,))
    are_alike: Booleans = words == np.uint64(int.from_bytes(wanted[-WIDTH:], "little"))
    return are_alike


def _non_digits(words: Unsigned) -> Unsigned:
    """Return the high bit of each byte above 9; the digits are already reduced to 0 to 9."""
    return (((words & _LOW7) + _ABOVE_NINE) | words) & _HIGH


def _non_plain(words: Unsigned) -> Unsigned:
    """Return the high bit of each byte that is no letter, no digit and none of `._/-`."""
    low = words & _LOW7
    plain = _within(low, *_DIGITS) | _within(low | _LOWER, *_LETTERS)
    plain |= _equal_to(low, _UNDERSCORES)
    return (~plain | words) & _HIGH


def _within(words: Unsigned, first: np.uint64, behind: np.uint64) -> Unsigned:
    """Return the high bit of each byte in a range; bytes have 7 bits."""
    return (words + first) & ~(words + behind) & _HIGH


def _equal_to(words: Unsigned, wanted: np.uint64) -> Unsigned:
    """Return the high bit of each byte that is equal to the wanted one."""
    others = words ^ wanted
    return ~(((others & _LOW7) + _LOW7) | others) & _HIGH
