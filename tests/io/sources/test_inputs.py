"""Inputs: files, gzip, standard input and pipes; and inputs that break off."""

from __future__ import annotations

import gzip
import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import SourceError
from rsp_engine.io.sources import inputs, open_source
from rsp_engine.io.sources.files import blocks
from rsp_engine.model.streams import DeadLetter, Element
from tests.io.sources.reading import blocks_of, places, read, write


def line(time: int) -> bytes:
    return b'{"timestamp": %d, "graph": ""}\n' % time


def times(elements):
    return [element.timestamp for element in elements]


MANY = b"".join(line(time) for time in range(2_000))


@pytest.fixture
def send(monkeypatch):
    """Return a function that puts bytes into standard input."""

    def put(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


@given(st.lists(st.binary(max_size=50), max_size=5), st.integers(1, 40), st.integers(0, 30))
def test_gzip_is_undone_however_its_bytes_are_cut(parts, size, padding):
    packed = b"".join(gzip.compress(part) for part in parts) + b"\0" * padding * bool(parts)
    chunks = (packed[at : at + size] for at in range(0, len(packed), size))
    with blocks_of(size):
        assert b"".join(inputs.unzipped(chunks)) == b"".join(parts)


@given(st.binary(max_size=50).filter(lambda data: data[:2] != b"\x1f\x8b"), st.integers(1, 10))
def test_other_bytes_stay_as_they_are(data, size):
    chunks = (data[at : at + size] for at in range(0, len(data), size))
    assert b"".join(inputs.unzipped(chunks)) == data


def test_gzip_is_known_by_its_extension_and_by_its_first_bytes(tmp_path):
    for name in ("a.jsonl.gz", "a.jsonl"):
        path = write(tmp_path / name, gzip.compress(line(1)) + gzip.compress(line(2)))
        assert times(read(path)[0]) == [1, 2]


def test_a_small_file_that_unpacks_to_much_is_unpacked_in_small_pieces():
    packed = gzip.compress(b"0" * 10_000_000)
    assert max(map(len, inputs.unzipped(iter([packed])))) <= inputs.BLOCK_SIZE


def test_a_gzip_file_that_was_cut_off_gives_what_came_before(tmp_path):
    whole = gzip.compress(MANY, mtime=0)
    path = write(tmp_path / "a.jsonl.gz", whole[: len(whole) // 2])
    elements, letters = read(path)
    assert times(elements) == list(range(len(elements)))
    assert len(elements) > 100
    assert [letter.position for letter in letters] == [len(elements) + 1]
    assert letters[0].reason == "the gzip data end too early: the file was cut off"
    assert line(len(elements)).startswith(letters[0].raw)


def test_a_damaged_gzip_file_gives_what_came_before(tmp_path):
    good = gzip.compress(line(1))
    path = write(tmp_path / "a.jsonl.gz", good + b"what is this")
    elements, letters = read(path)
    assert times(elements) == [1]
    assert places(letters) == [(2, b"")]
    assert letters[0].reason == "the gzip data are damaged here"


def test_a_wrong_checksum_is_reported(tmp_path):
    packed = bytearray(gzip.compress(line(1)))
    packed[-8] ^= 1
    _, letters = read(write(tmp_path / "a.jsonl.gz", bytes(packed)))
    assert [letter.reason for letter in letters] == ["the gzip data are damaged here"]


def test_a_file_named_gz_that_is_not_gzip_is_reported(tmp_path):
    elements, letters = read(write(tmp_path / "a.jsonl.gz", line(1)))
    assert elements == []
    assert [letter.reason for letter in letters] == ["the gzip data are damaged here"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.nq", "a.trig"])
def test_an_empty_file_is_an_empty_stream(tmp_path, name):
    assert read(write(tmp_path / name, b"")) == ([], [])


def test_a_file_can_be_read_twice(tmp_path):
    source = open_source(str(write(tmp_path / "a.jsonl", line(1))))
    assert list(source) == list(source) != []


def test_a_byte_order_mark_is_left_out(tmp_path):
    path = write(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + line(1))
    for size in (1, 2, 3, 100):
        with blocks_of(size):
            elements, letters = read(path)
        assert times(elements) == [1]
        assert letters == []


def test_a_line_that_is_too_long_is_left_out_and_its_neighbours_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "LONGEST", 100)
    data = line(1) + b"x" * 250 + b"\n" + line(2) + b"y" * 101
    path = write(tmp_path / "a.jsonl", data)
    for size in (1, 7, 60, 99):
        with blocks_of(size):
            elements, letters = read(path)
        assert times(elements) == [1, 2]
        assert [letter.position for letter in letters] == [2, 4]
        assert letters[0].raw.startswith(b"xxx")
        assert letters[1].raw.startswith(b"yyy")
        assert "longer than 100 bytes" in letters[0].reason


def test_a_file_that_disappears_or_fails_is_reported_where_it_breaks_off(tmp_path):
    path = write(tmp_path / "a.jsonl", line(1))
    source = open_source(str(path))
    path.unlink()
    (letter,) = source
    assert isinstance(letter, DeadLetter)
    assert letter.position == 1
    assert letter.reason == "the file cannot be read further: No such file or directory"


def test_the_standard_input_is_read(send):
    send(line(1) + line(2))
    elements, _ = read("-?format=jsonl")
    assert times(elements) == [1, 2]
    assert {element.source for element in elements} == {"-"}


def test_gzip_comes_through_the_standard_input_too(send):
    send(gzip.compress(line(1)))
    assert times(read("-?format=jsonl")[0]) == [1]


def test_the_standard_input_is_read_once(send):
    send(line(1))
    source = open_source("-?format=jsonl")
    assert len(list(source)) == 1
    with pytest.raises(SourceError, match="only once"):
        list(source)


def test_a_closed_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(SourceError, match="is closed"):
        open_source("-?format=jsonl")


def test_a_standard_input_that_fails_is_reported(monkeypatch):
    class Failing(io.BytesIO):
        def read1(self, size=-1):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Failing()))
    (letter,) = open_source("-?format=jsonl")
    assert isinstance(letter, DeadLetter)
    assert letter.reason == "the standard input cannot be read further: Input/output error"


def test_an_element_is_given_as_soon_as_its_line_has_come(monkeypatch):
    reader, writer = os.pipe()
    with os.fdopen(reader) as stdin, os.fdopen(writer, "wb", buffering=0) as producer:
        monkeypatch.setattr("sys.stdin", stdin)
        stream = iter(open_source("-?format=jsonl"))
        for time in range(3):
            producer.write(line(time))
            element = next(stream)
            assert isinstance(element, Element)
            assert element.timestamp == time
        producer.close()
        assert list(stream) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_is_opened_once(tmp_path):
    path = tmp_path / "a.jsonl"
    os.mkfifo(path)
    source = open_source(str(path))
    producer = threading.Thread(target=lambda: path.write_bytes(line(1) + line(2)))
    producer.start()
    elements = list(source)
    producer.join(10)
    assert times(elements) == [1, 2]
