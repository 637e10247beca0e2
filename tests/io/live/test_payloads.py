"""Payloads: RDF in any syntax, with a time in the payload or the time of arrival."""

from __future__ import annotations

import json
from typing import Any

import pyoxigraph as ox
import pytest

from rsp_engine.errors import SourceError
from rsp_engine.io.sinks.jelly_frames import Frames
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.live.address import address_of
from rsp_engine.io.sources.live.payloads import Payloads
from rsp_engine.io.sources.live.records import Message, SpoolRecord
from rsp_engine.io.sources.live.sse import EventParser
from rsp_engine.model.streams import DeadLetter, Element

EX = "http://example.org/"
ARRIVAL = 1_700_000_000_000
PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
TRIPLE = f"<{EX}a> <{EX}p> <{EX}b> ."
TURTLE = f"{TRIPLE} <{EX}r> {PROV} 5000 ."
NQUADS = f"<{EX}a> <{EX}p> <{EX}b> <{EX}g/5000> .\n<{EX}a> <{EX}p> <{EX}c> <{EX}g/6000> .\n"
JSONLD = {
    "@id": f"{EX}a",
    f"{EX}p": {"@id": f"{EX}b"},
    "http://www.w3.org/ns/prov#generatedAtTime": 5000,
}
FRAMES = Frames().frame(
    [(quad.triple, quad.graph_name) for quad in ox.parse(NQUADS, ox.RdfFormat.N_QUADS)]
)


def read(payload: str | bytes, format: str, time: str = "payload") -> list[Element | DeadLetter]:  # noqa: A002
    data = payload.encode() if isinstance(payload, str) else payload
    reader = Payloads("source", format, time)
    return list(reader.elements(SpoolRecord(7, ARRIVAL, Message(data))))


@pytest.mark.parametrize(
    ("payload", "format_name", "times"),
    [
        (json.dumps({"timestamp": 5000, "graph": TRIPLE}), "jsonl", [5000]),
        (json.dumps({"timestamp": 5000, "graph": TRIPLE}, indent=1), "jsonl", [5000]),
        (f"{json.dumps({'timestamp': 1, 'graph': ''})}\n" * 2, "jsonl", [1, 1]),
        (TURTLE, "turtle", [5000]),
        (TURTLE.replace(" <", "\n<"), "trig", []),
        (NQUADS, "nquads", [5000, 6000]),
        (f"<{EX}g/5000> {{ {TRIPLE} }} <{EX}g/6000> {{ {TRIPLE} }}", "trig", [5000, 6000]),
        (json.dumps(JSONLD), "jsonld", [5000]),
        (FRAMES, "jelly", [5000, 6000]),
    ],
)
def test_the_time_is_in_the_payload(payload, format_name, times):
    found = [item for item in read(payload, format_name) if isinstance(item, Element)]
    assert [element.timestamp for element in found] == times
    assert all((e.source, e.position) == ("source", 7) for e in found)


@pytest.mark.parametrize(
    ("payload", "format_name"),
    [
        (json.dumps({"graph": TRIPLE}), "jsonl"),
        (TRIPLE, "turtle"),
        (NQUADS.splitlines()[0], "nquads"),
        (FRAMES, "jelly"),
    ],
)
def test_the_time_is_that_of_the_arrival_when_declared(payload, format_name):
    [element] = read(payload, format_name, "arrival")
    assert isinstance(element, Element)
    assert element.timestamp == ARRIVAL
    assert len(element.triples) == (2 if format_name == "jelly" else 1)


def test_a_clock_that_is_far_ahead_is_set_aside_and_one_that_is_a_little_is_not():
    texts = [json.dumps({"timestamp": ARRIVAL + ms, "graph": ""}) for ms in (600_000, 10_800_000)]
    assert isinstance(read(texts[0], "jsonl")[0], Element)
    [letter] = read(texts[1], "jsonl")
    assert isinstance(letter, DeadLetter)
    assert letter.reason == "future: its time is 3h ahead of its arrival"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mqtt://host", "it names no topic"),
        ("mqtt:///topic", "it names no host"),
        ("mqtt://host/a/%23/b", "it is no filter of topics"),
        ("mqtt://host/a/b%23", "it is no filter of topics"),
        ("mqtt://host/a+/b", "it is no filter of topics"),
        ("mqtt://host:99999999/topic", "this address cannot be read"),
        ("mqtt://user:secret@host/topic", "must not contain a user or a password"),
        ("mqtt://host/topic?fromat=jsonl", "there is no option fromat"),
        ("mqtt://host/topic?format=tsv", "the option format cannot be 'tsv'"),
        ("mqtt://host/topic?time=now", "the option time cannot be 'now'"),
        ("mqtt://host/topic?dedup=yes", "the option dedup cannot be 'yes'"),
        ("mqtt://host/topic?idle=soon", "the option idle cannot be 'soon'"),
        ("mqtt://host/topic?room=0", "the option room is a number of bytes"),
        ("mqtt://host/topic?version=4", "the option version cannot be '4'"),
        ("ws://host/feed?client=a", "there is no option client"),
        ("sse+http://host/feed?resume=a", "there is no option resume"),
    ],
)
def test_what_cannot_be_understood_is_refused(spec, message):
    with pytest.raises(SourceError) as refusal:
        open_source(spec)
    assert message in str(refusal.value)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("topic", ["#", "+", "a/+/b/#", "+/+", "a//b", "/a"])
def test_filters_of_topics_are_taken(topic):
    assert open_source(f"mqtt://host/{topic}").name


def test_credentials_come_from_the_environment_and_are_never_shown():
    given = {
        "RSP_SOURCE_E_ORG_TOKEN": "s3cret",
        "RSP_SOURCE_E_ORG_8883_USER": "me",
        "RSP_SOURCE_E_ORG_8883_PASSWORD": "s3cret",
    }
    token, user = (address_of(url, given) for url in ("wss://e.org/feed", "mqtts://e.org:8883/t"))
    assert token.headers() == {"Authorization": "Bearer s3cret"}
    assert user.user() == ("me", "s3cret")
    assert "s3cret" not in f"{token!r} {user!r}"
    with pytest.raises(SourceError, match="must be set together"):
        address_of("mqtt://a.org/t", {"RSP_SOURCE_A_ORG_USER": "me"}).user()


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_event_that_is_too_large_is_not_kept_whole_however_it_is_cut(end, size):
    """One endless line, or many lines: memory is little more than the limit."""
    long, many = b"data: " + b"x" * 500_000, b"data: yyyyy" + end
    lines = [b"data: a" + end + b"data: b" + end, long + end, many * 50_000, b"id: 7" + end]
    text = lines[0] + end + lines[1] + end + lines[2] + end + lines[3] + b"data: c" + end + end
    events = EventParser(1_000)
    found: list[Any] = []
    for at in range(0, len(text), size if size > 1 else 4_099):
        found += events.feed(text[at : at + (size if size > 1 else 4_099)])
        assert sum(map(len, (events._line, *events._data))) < 100_000
    assert [(each.payload[:5], each.id, each.size) for each in found] == [
        (b"a\nb", "", 0), (b"xxxxx", "", 500_000), (b"yyyyy", "", 299_999), (b"c", "7", 0),
    ]  # fmt: skip
