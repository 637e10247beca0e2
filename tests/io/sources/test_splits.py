"""The splits of a file of lines: found by reading only the lines around them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.io.sources import splits
from rsp_engine.io.sources.inputs import FileInput
from rsp_engine.io.sources.splits import LineCount, Split, split_lines
from tests.thoroughness import examples

MARK = b"\xef\xbb\xbf"
lines = st.lists(st.sampled_from((b"", b"a", b"b", b"abcdefghij", MARK + b"a")), max_size=12)


def differ(one: bytes, other: bytes) -> bool:
    """Return whether two lines begin with different letters."""
    return one[:1] != other[:1]


def naive_splits(data: bytes, size: int) -> list[Split]:
    """Read all lines; a split has `size` bytes, the rest of their last line, and what follows."""
    found, start, at = list[Split](), 0, 0
    whole = data.splitlines(keepends=True)
    for before, after in pairwise(whole):
        at += len(before)
        # Bytes that end with a line take the next one too.
        is_full = at > start + size or (at == start + size and not before.endswith(b"\n"))
        if is_full and not after.startswith(MARK) and differ(before, after):
            found.append(Split(start, at))
            start = at
    return [*found, Split(start, None)] if start < len(data) else found


@examples(300)
@given(lines, st.booleans(), st.integers(1, 40), st.sampled_from((1, 4, 1 << 12)))
def test_the_lines_around_a_place_are_enough_to_split_a_file(found, has_end, size, read):
    data = b"\n".join(found) + b"\n" * has_end
    with TemporaryDirectory() as folder, patch.object(splits, "_LINE_BYTES", read):
        path = Path(folder) / "a"
        path.write_bytes(data)
        source = FileInput("a", path)
        whole = list(split_lines(source, size, None, differ))
        assert whole == naive_splits(data, size)
        for place, split in enumerate(whole):
            assert list(split_lines(source, size, split, differ)) == whole[place + 1 :]


@examples(100)
@given(lines, st.lists(st.integers(0, 80), max_size=5))
def test_lines_are_counted_before_any_place(found, places):
    data = b"\n".join(found)
    with TemporaryDirectory() as folder, patch.object(splits, "BLOCK_SIZE", 3):
        path = Path(folder) / "a"
        path.write_bytes(data)
        count = LineCount(FileInput("a", path))
        for place in places:
            assert count.before(place) == data[:place].count(b"\n")
