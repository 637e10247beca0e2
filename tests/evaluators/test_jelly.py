"""Jelly: what is written is read back, by this reader and by others."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyjelly.integrations.generic.parse import parse_jelly_flat
from pyjelly.integrations.rdflib.serialize import flat_stream_to_file
from rdflib import Graph as RdflibGraph

from rsp_engine.engine import Engine
from rsp_engine.errors import SinkError, SourceError
from rsp_engine.io.sinks import FORMATS, open_sink
from rsp_engine.io.sinks.jelly_frames import Frames
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.files.jelly import quads_in
from rsp_engine.model.answers import Graph
from rsp_engine.model.streams import DeadLetter, Element
from tests.drivers.cut import texts
from tests.io.sinks.samples import GRAPH, answer, iris, literals
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EX = "http://example.org/"
NQUADS = f"""\
<{EX}a> <{EX}p> "1" <{EX}g/1000> .
_:x <{EX}p> "due"@it <{EX}g/1000> .
<{EX}g> <http://www.w3.org/ns/prov#generatedAtTime> "1970-01-01T00:00:02Z"^^\
<http://www.w3.org/2001/XMLSchema#dateTime> .
<{EX}b> <{EX}p> _:x <{EX}g> .
<{EX}a> <{EX}p> "3"^^<{EX}kind> <{EX}g/3000> .
"""


plain = literals.filter(lambda literal: literal.direction is None)


class Bytes:
    """An input that is there."""

    def __init__(self, data: bytes) -> None:
        self.name = "bytes"
        self._data = data

    def chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self._data), 7):
            yield self._data[start : start + 7]


def framed(quads: list[ox.Quad], size: int = 2) -> bytes:
    frames = Frames()
    cut = [quads[start : start + size] for start in range(0, len(quads), size)]
    return b"".join(frames.frame([(quad.triple, quad.graph_name) for quad in c]) for c in cut)


def parsed(text: str) -> list[ox.Quad]:
    return list(ox.parse(text, ox.RdfFormat.N_QUADS))


@examples(100)
@given(st.lists(st.builds(ox.Quad, iris, iris, iris | plain, iris)), st.integers(1, 5))
def test_quads_that_are_written_are_read_back(quads, size):
    assert list(quads_in(Bytes(framed(quads, size)))) == quads


def test_a_text_with_a_direction_is_refused():
    text = ox.Literal("a", language="ar", direction=ox.BaseDirection.RTL)
    quad = ox.Quad(ox.NamedNode(EX), ox.NamedNode(EX), text, ox.NamedNode(EX))
    with pytest.raises(SinkError, match="cannot represent the direction"):
        framed([quad])


def test_the_reader_of_the_library_reads_what_is_written():
    found = list(parse_jelly_flat(BytesIO(framed(parsed(NQUADS)))))
    assert [str(each.p) for each in found].count(f"<{EX}p>") == 4
    assert len(found) == 5
    assert str(found[1].o) == '"due"@it'


def test_elements_and_their_times_are_those_of_n_quads(tmp_path):
    (tmp_path / "stream.nq").write_text(NQUADS)
    (tmp_path / "stream.jelly").write_bytes(framed(parsed(NQUADS)))
    found = {}
    for kind in ("nq", "jelly"):
        items = list(open_source(str(tmp_path / f"stream.{kind}")))
        assert all(isinstance(item, Element) for item in items)
        found[kind] = [(i.timestamp, i.triples) for i in items if isinstance(i, Element)]
    assert [time for time, _ in found["jelly"]] == [1000, 2000, 3000]
    assert found["jelly"] == found["nq"]


def test_a_frame_of_triples_is_an_element_with_the_time_it_says(tmp_path):
    graph = RdflibGraph()
    graph.parse(data=f"<{EX}a> <{EX}p> 1 ; <http://www.w3.org/ns/prov#generatedAtTime> 5 .")
    with (tmp_path / "stream.jelly").open("wb") as stream:
        flat_stream_to_file((triple for triple in graph), stream)
    [element] = open_source(str(tmp_path / "stream.jelly"))
    assert isinstance(element, Element)
    assert (element.timestamp, len(element.triples)) == (5, 2)


def test_what_comes_before_damage_is_kept(tmp_path):
    data = framed(parsed(NQUADS))
    (tmp_path / "stream.jelly").write_bytes(data[:-9])
    element, letter, said_in_vain = open_source(str(tmp_path / "stream.jelly"))
    assert isinstance(element, Element)
    assert element.timestamp == 1000
    assert isinstance(letter, DeadLetter)
    assert isinstance(said_in_vain, DeadLetter)
    assert letter.raw == f"<{EX}b> <{EX}p> _:x .\n".encode(), "its graph may not be complete"
    assert letter.reason.startswith("no more can be read: it is not Jelly: ")


@pytest.mark.parametrize("data", [b"", b"nonsense\n" * 100])
def test_what_is_no_jelly_is_told(tmp_path, data):
    (tmp_path / "stream.jelly").write_bytes(data)
    letters = list(open_source(str(tmp_path / "stream.jelly")))
    assert [type(letter) for letter in letters] == [DeadLetter] * bool(data)


def test_queries_answer_the_same_from_jelly_and_from_n_quads(tmp_path):
    lines = [f'<{EX}{n % 7}> <{EX}v> "{n}" <{EX}g/{100 * n}> .\n' for n in range(200)]
    (tmp_path / "s.nq").write_text("".join(lines))
    (tmp_path / "s.jelly").write_bytes(framed(parsed("".join(lines)), 30))
    found = []
    for kind in ("nq", "jelly"):
        engine = Engine()
        engine.register(
            f"PREFIX : <{EX}> SELECT ?s (COUNT(?v) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE 3s "
            "STEP 1s] WHERE { WINDOW :w { ?s :v ?v } } GROUP BY ?s"
        )
        engine.bind(f"{EX}s", str(tmp_path / f"s.{kind}"))
        found.append(texts(engine))
    assert found[0] == found[1]
    assert len(found[0]) > 15


def test_answers_that_are_written_are_a_stream(tmp_path):
    path = tmp_path / "answers.jelly"
    sink = open_sink("jelly", str(path), "CONSTRUCT")
    answers = [answer(GRAPH, 5000), answer(Graph(()), 6000), answer(GRAPH, 7000)]
    for each in answers:
        sink.write(each)
    sink.close()
    writer = FORMATS["nquads"].writer()
    written = parsed("".join(str(writer(each)) for each in answers))
    assert list(quads_in(Bytes(path.read_bytes()))) == written
    assert [e.timestamp for e in open_source(str(path)) if isinstance(e, Element)] == [5000, 7000]


def test_rows_and_checkpoints_are_refused(tmp_path):
    with pytest.raises(SinkError, match="jelly cannot hold the rows"):
        open_sink("jelly", str(tmp_path / "a"), "SELECT")
    with pytest.raises(SinkError, match="cannot be resumed after a crash"):
        open_sink("jelly", str(tmp_path / "a"), "CONSTRUCT", keep=True)


def test_without_the_extra_one_line_says_which_it_is(tmp_path: Path, monkeypatch):
    (tmp_path / "s.jelly").write_bytes(b"")
    monkeypatch.setattr("rsp_engine.io.sources.spec.find_spec", lambda _: None)
    monkeypatch.setattr("rsp_engine.io.sinks.jelly.find_spec", lambda _: None)
    with pytest.raises(SourceError, match=r"needs the extra jelly\n.* install pyjelly"):
        open_source(str(tmp_path / "s.jelly"))
    with pytest.raises(SinkError, match=r"needs the extra jelly\n.* install pyjelly"):
        open_sink("jelly", str(tmp_path / "a"), "CONSTRUCT")
