"""A stream that is written and read back is the same, wherever the edges of blocks fall."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.io.sources import open_source
from rsp_engine.model.streams import DeadLetter
from tests.io.sources.reading import EX, blocks_of, read, write
from tests.io.sources.strategies import streams
from tests.thoroughness import examples

sizes = st.integers(1, 300)
GARBAGE = b"<http://example.org/a> this is 'not \xff RDF .\n"


def graph_name(index: int, time: int) -> ox.NamedNode:
    """Return a name that ends in the time and differs from the names before and after it."""
    return ox.NamedNode(f"{EX}{index}/{time}")


def quads(index, time, triples):
    name = graph_name(index, time)
    return [ox.Quad(t.subject, t.predicate, t.object, name) for t in triples]


def serialised(data, **how) -> bytes:
    text = ox.serialize(data, **how)
    assert text is not None
    return text


def as_jsonl(stream):
    formats = ["turtle", "nt", "application/n-triples; charset=utf-8", "ttl"]
    syntaxes = [ox.RdfFormat.TURTLE, *[ox.RdfFormat.N_TRIPLES] * 2, ox.RdfFormat.TURTLE]
    for index, (time, triples) in enumerate(stream):
        graph = serialised(triples, format=syntaxes[index % 4]).decode()
        value = {"timestamp": time, "format": formats[index % 4], "graph": graph}
        yield json.dumps(value, ensure_ascii=index % 2 == 0).encode() + b"\n"


def as_nquads(stream):
    for index, (time, triples) in enumerate(stream):
        yield serialised(quads(index, time, triples), format=ox.RdfFormat.N_QUADS)


def as_trig(stream):
    yield f"@prefix e: <{EX}> .\nPREFIX f: <{EX}>\n".encode()
    for index, (time, triples) in enumerate(stream):
        prefixes = {"e": EX} if index % 2 else {}
        text = serialised(quads(index, time, triples), format=ox.RdfFormat.TRIG, prefixes=prefixes)
        yield text.replace(b'"', b'"""') if is_plain(triples) else text


def is_plain(triples):
    """Return whether the strings of a graph need no escapes in triple quotes."""
    return not any(set('"\\\r') & set(str(getattr(t.object, "value", ""))) for t in triples)


WRITERS = {"jsonl": as_jsonl, "nquads": as_nquads, "trig": as_trig}


def read_back(data: bytes, name: str):
    with TemporaryDirectory() as folder:
        return read(f"{write(Path(folder, 'stream'), data)}?format={name}")


@pytest.mark.parametrize("name", WRITERS)
@examples(40)
@given(stream=streams, size=sizes, packed=st.booleans())
def test_a_stream_is_read_back(name, stream, size, packed):
    data = b"".join(WRITERS[name](stream))
    with blocks_of(size):
        elements, letters = read_back(gzip.compress(data) if packed else data, name)
    assert letters == []
    assert [(e.timestamp, set(e.triples)) for e in elements] == [
        (time, set(triples)) for time, triples in stream
    ]


@pytest.mark.parametrize("name", WRITERS)
@examples(40)
@given(stream=streams, size=sizes)
def test_the_bytes_and_the_line_of_an_element_are_where_it_was_written(name, stream, size):
    data = b"".join(WRITERS[name](stream))
    with blocks_of(size):
        elements, _ = read_back(data, name)
    for element in elements:
        assert data[nth_line(data, element.position) :].startswith(element.raw)


def nth_line(data: bytes, number: int) -> int:
    """Return the offset at which a line starts; lines end with LF."""
    start = 0
    for _ in range(number - 1):
        start = data.index(b"\n", start) + 1
    return start


@pytest.mark.parametrize("name", ["jsonl", "nquads"])
@examples(40)
@given(stream=streams, size=sizes, places=st.sets(st.integers(0, 30)))
def test_bad_lines_are_set_aside_and_nothing_else(name, stream, size, places):
    written = b"".join(WRITERS[name](stream)).splitlines(keepends=True)
    for place in sorted(places):
        written.insert(min(place, len(written)), GARBAGE)
    with blocks_of(size):
        elements, letters = read_back(b"".join(written), name)
    expected = [n for n, line in enumerate(written, 1) if line == GARBAGE]
    assert [letter.position for letter in letters] == expected
    assert {letter.raw for letter in letters} <= {GARBAGE}
    assert [(e.timestamp, set(e.triples)) for e in elements] == [
        (time, set(triples)) for time, triples in stream
    ]


@pytest.mark.parametrize(
    "broken",
    [
        b"%s { <http://example.org/a> <b c> 7 . }\n",
        b"%s { <http://example.org/a> 'unclosed . }\n",
        b"%s { <http://example.org/a> '''unclosed . }\n",
        b'%s { <http://example.org/a> """unclosed . }\n',
        b"%s { <http://example.org/a> <http://example.org/p> 7 .\n",
        b"%s { nope:a nope:b nope:c }\n",
        b"%s { \xff }\n",
        b"GRAPH GRAPH %s { }\n",
        b"} . %s } { .\n",
    ],
)
@examples(40)
@given(stream=streams, size=sizes, place=st.integers(0, 7))
def test_a_bad_block_of_trig_does_not_take_its_neighbours_with_it(broken, stream, size, place):
    prologue, *written = as_trig(stream)
    broken = broken % b"<http://example.org/broken/1>"
    written.insert(place, broken)
    with blocks_of(size):
        elements, letters = read_back(prologue + b"".join(written), "trig")
    assert letters
    assert without_space(b"".join(letter.raw for letter in letters)) == without_space(broken)
    assert [(e.timestamp, set(e.triples)) for e in elements] == [
        (time, set(triples)) for time, triples in stream
    ]


def without_space(data: bytes) -> bytes:
    return b"".join(data.split())


@pytest.mark.parametrize("name", WRITERS)
@examples(40)
@given(data=st.data(), stream=streams, size=sizes)
def test_any_bytes_give_elements_and_dead_letters_and_no_failure(name, data, stream, size):
    written = bytearray(b"".join(WRITERS[name](stream)))
    for _ in range(data.draw(st.integers(0, 5))):
        at = data.draw(st.integers(0, len(written)))
        written[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    with blocks_of(size), TemporaryDirectory() as folder:
        path = write(Path(folder, "stream"), bytes(written))
        for item in open_source(f"{path}?format={name}"):
            assert not isinstance(item, DeadLetter) or item.reason
