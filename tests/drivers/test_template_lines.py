"""Plain JSON that Arrow reads, many lines at once: it becomes what each line does by itself."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.io.canonical_literals import canonical_triples
from rsp_engine.io.sources.files.jsonl import JsonLinesSource
from rsp_engine.io.sources.files.message_template import MessageTemplate
from rsp_engine.io.sources.live.kafka.reader import PartitionPart
from rsp_engine.io.sources.live.payloads import Payloads
from rsp_engine.io.sources.live.records import Message, SpoolRecord
from rsp_engine.io.sources.times import TIME_UNITS
from rsp_engine.model.streams import Element
from tests.drivers.test_json_columns import columns_are_elements
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.io.sources.times import TimeUnit
    from rsp_engine.model.streams import DeadLetter

PREFIX = "@prefix : <http://example.org/> . "
TEMPLATES = (
    ':{room} :temperature "{value}"^^xsd:double .',
    ':{room} :temperature "{value}"^^xsd:decimal ; :at "{at}"^^xsd:integer .',
    ':{room} :temperature "{value}"^^xsd:float ; :name "{room}" , "{room} %"@en .',
    ":{room} :says '{value}' .",
    ':{room} :says "{value}"^^xsd:integer , "{value}"^^xsd:int .',
    ':{room} :is "{value}"^^xsd:boolean ; :near :{room} .',
    "<urn:%41:{room}/{value}> :in <{room}:x> .",
    ':{room} :p "{in.value}" ; :q "{in.deep.value}"^^xsd:double .',
    ':{room} :p "{tags[0]}" .',
    ":a :p :b .",
    '[] :p "{room}" .',
    ":{room} :p 'x' . :{value} :p 'x' .",
)
rooms: st.SearchStrategy[object] = st.sampled_from(
    ("lab", "r 17", "é", "", 'a"b\\', "x\ny", "\x7f\x01", "\ud800", None, 17, True, ["a", "b"], {})
)
values = st.sampled_from(
    (
        *(
            24.5,
            24.0,
            24,
            0,
            -0.0,
            -7,
            1e-7,
            1e300,
            1e15,
            999999999999999.9,
            0.1 + 0.2,
            12345.678901,
        ),
        *(
            2**53 + 1,
            2**63,
            10**25,
            True,
            False,
            None,
            "",
            "24.5",
            ".0",
            "-.0",
            "+5",
            "5.00",
            "1e3",
        ),
        *("INF", "NaN", "nan", "x", "true", "2024-03-01T09:00:02Z", [1, 2], [], {"value": 3}),
    )
)
moments = st.sampled_from(
    (
        7,
        7,
        7,
        1_700_000_000_123,
        10**18,
        2**63,
        -5,
        1.5,
        True,
        None,
        "5",
        "1970-01-01T00:00:07Z",
        [7],
    )
)
inner = st.fixed_dictionaries(
    {}, optional={"value": values, "deep": st.just({"value": 1.5}) | values}
)
objects = st.fixed_dictionaries(
    {"room": rooms, "value": values, "at": moments},
    optional={"in": inner | values, "tags": st.lists(rooms, max_size=2), "more": values},
)
LINE = b'{"room": "lab", "value": 24.5, "at": 7}'
JSONL = b'{"timestamp": 7, "graph": "<http://example.org/a> <http://example.org/p> 1 ."}'
NEARLY = (
    *(b"", b"  ", b"{}", b"{", b"}", b"[]", b"null", b"{}{}", b"\xff", LINE + b" ", b" " + LINE),
    LINE + LINE,
    LINE + b"," + LINE,
    LINE + b"\r",
    LINE.replace(b"lab", b"l\xffb"),
    LINE.replace(b"lab", b"l\tb"),
    LINE.replace(b"lab", b"l\\ud83d\\ude00b"),
    LINE.replace(b"lab", b"l\\ud83db"),
    LINE.replace(b"24.5", b"24.50"),
    LINE.replace(b"24.5", b"2.45e1"),
    LINE.replace(b"24.5", b"NaN"),
    LINE.replace(b"24.5", b"1e999"),
    LINE.replace(b"24.5", b"024.5"),
    LINE.replace(b"24.5", b"-0"),
    LINE.replace(b"24.5", b"9" * 5000),
    LINE.replace(b'"at"', b'"value": 25.5, "at"'),
    LINE.replace(b'"at"', b'"in": {"value": "}\\n{"}, "at"'),
    LINE.replace(b"}", b', "more": [{}'),
)
lines = st.one_of(
    st.just(LINE),
    objects.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(NEARLY),
)


def opened(data: bytes, template: str, unit: TimeUnit = "ms", time: str = "at") -> JsonLinesSource:
    made = MessageTemplate(PREFIX + template, "t.ttl", time, has_envelope=False)
    return JsonLinesSource(_Input(data), unit, made)


def one_by_one(source: JsonLinesSource) -> list[Element | DeadLetter]:
    """Return what the template makes of each line: the definition."""
    data = b"".join(source._input.chunks())
    numbered = enumerate(data.split(b"\n"), start=1)
    last = data.count(b"\n") + 1
    return [
        source._read(number, line + b"\n" * (number < last))
        for number, line in numbered
        if line.strip()
    ]


def canonical(items: Iterable[Element | DeadLetter]) -> list[Element | DeadLetter]:
    """Return elements with literals in the form of the engine: the first thing that drivers do."""
    return [
        item._replace(triples=tuple(canonical_triples(item.triples)))
        if isinstance(item, Element)
        else item
        for item in items
    ]


@examples(1000)
@given(
    st.lists(lines, max_size=8),
    st.sampled_from((0, 1, 30)),
    st.sampled_from(TEMPLATES),
    st.sampled_from(TIME_UNITS),
    st.sampled_from(("at", "at", "in.value", "value")),
)
def test_lines_are_read_together_as_each_by_itself(found, many, template, unit, time):
    source = opened(b"\n".join([LINE] * many + found), template, unit, time)
    items = one_by_one(source)
    assert canonical(source) == canonical(items)
    event("in columns" if columns_are_elements(source, items) else "by elements")


@pytest.mark.parametrize("template", TEMPLATES)
def test_lines_that_are_nearly_plain(template):
    for line, at in product(NEARLY, (0, 10, 20)):
        source = opened(b"\n".join([*[LINE] * at, line, *[LINE] * (20 - at)]), template)
        items = one_by_one(source)
        assert canonical(source) == canonical(items)
        columns_are_elements(source, items)


@pytest.mark.parametrize("ending", [b"", b"\n"])
@pytest.mark.parametrize(
    ("template", "body"),
    [
        (TEMPLATES[0], {"room": "lab", "value": 24.0}),
        (TEMPLATES[1], {"room": "a b", "value": 24}),
        (TEMPLATES[3], {"room": "lab", "value": 'a "b"\n'}),
        (TEMPLATES[4], {"room": "lab", "value": "24"}),
        (TEMPLATES[5], {"room": "lab", "value": True}),
        (TEMPLATES[7], {"room": "lab", "in": {"value": "x", "deep": {"value": 2}}}),
    ],
)
def test_lines_as_programs_write_them_are_not_read_one_by_one(template, body, ending):
    found = [json.dumps({**body, "at": 7 + n}).encode() for n in range(40)]
    source = opened(b"\n".join(found) + ending, template)
    items = one_by_one(source)
    with patch.object(JsonLinesSource, "_read", lambda *_: pytest.fail("a line is read by itself")):
        assert canonical(source) == canonical(items)
        assert columns_are_elements(source, items) or "a b" in str(body)


@examples(600)
@given(
    st.lists(lines | st.just(b"[" + LINE + b"]"), min_size=1, max_size=6),
    st.sampled_from((0, 30)),
    st.sampled_from((*TEMPLATES, None)),
    st.sampled_from((100, 10**19)),
    st.sampled_from(("payload", "arrival")),
)
def test_messages_are_read_together_as_each_by_itself(found, many, template, ahead, time):
    made = None if template is None else MessageTemplate(PREFIX + template, "t.ttl", "at")
    name, plain = ("json", LINE) if made else ("jsonl", JSONL)
    payloads = Payloads("mqtt://broker/topic", name, time, ahead, template=made)
    records = [
        SpoolRecord(number, 7, Message(payload))
        for number, payload in enumerate([plain] * many + found, start=3)
    ]
    part = PartitionPart(payloads, records)
    columns_are_elements(part, [*part])


@pytest.mark.parametrize(("name", "line"), [("json", LINE), ("jsonl", JSONL)])
def test_messages_as_programs_write_them_are_read_together(name, line):
    made = MessageTemplate(PREFIX + TEMPLATES[0], "t.ttl", "at") if name == "json" else None
    records = [SpoolRecord(number, 7, Message(line)) for number in range(40)]
    part = PartitionPart(Payloads("kafka://broker/topic", name, template=made), records)
    assert columns_are_elements(part, [*part])


class _Input:
    name = "a.json"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def chunks(self) -> Any:
        yield self._data
