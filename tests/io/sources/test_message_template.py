"""Templates of messages: JSON and rows become triples, or the field that does not fit is named."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import SourceError
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.files.json_element import UnfitError
from rsp_engine.io.sources.files.message_template import Envelope, MessageTemplate
from rsp_engine.io.sources.live.payloads import Payloads
from rsp_engine.io.sources.live.records import Message, SpoolRecord
from rsp_engine.model.streams import DeadLetter, Element
from tests.thoroughness import examples

XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIX = "@prefix : <http://example.org/> . "
ENVELOPE = Envelope("factory/3/vibration", b"m7", (("site", b"north"),))


def triples(template: str, body: Any, envelope: Envelope = ENVELOPE) -> list[str]:
    made = MessageTemplate(PREFIX + template, "t.ttl")
    found = made.element(body, envelope, given=0)[1]
    return sorted(str(triple).replace("http://example.org/", ":") for triple in found)


@pytest.mark.parametrize(
    ("template", "body", "expected"),
    [
        (":s :p '{a.b}' .", {"a": {"b": "x"}}, ['<:s> <:p> "x"']),
        (":s :p '{a[1]}' .", {"a": ["x", "y"]}, ['<:s> <:p> "y"']),
        (":s :p '{a}' .", {"a": ["x", "y"]}, ['<:s> <:p> "x"', '<:s> <:p> "y"']),
        (":s :p '{a}' ; :q 1 .", {"a": None}, [f'<:s> <:q> "1"^^<{XSD}integer>']),
        (":s :p '{a}' .", {"a": []}, []),
        (":s :p '{a}' .", {"a": True}, ['<:s> <:p> "true"']),
        (":s :p '{$topic}' .", {}, ['<:s> <:p> "factory/3/vibration"']),
        (":s :p '{$topic[2]}' .", {}, ['<:s> <:p> "vibration"']),
        (":{$key} :p '{$header.site}' .", {}, ['<:m7> <:p> "north"']),
        ("<http://example.org/{$key}> :p '{$header.site}' .", {}, ['<:m7> <:p> "north"']),
        (
            "<http://example.org/{r.id}> :p '{r.v}' .",
            {"r": [{"id": 1, "v": 5}, {"id": 2, "v": 6}]},
            ['<:1> <:p> "5"', '<:2> <:p> "6"'],
        ),
        (
            "<http://example.org/{a}> :p '{b}' .",
            {"a": [1, 2], "b": [3, 4]},
            ['<:1> <:p> "3"', '<:1> <:p> "4"', '<:2> <:p> "3"', '<:2> <:p> "4"'],
        ),
    ],
)
def test_fields_are_paths_and_arrays_repeat_triples(template, body, expected):
    assert triples(template, body) == expected


@pytest.mark.parametrize(
    ("field", "body", "reason"),
    [
        ("'{a.b}'", {"a": {}}, "the field a.b is absent"),
        ("'{a.b}'", {"a": 1}, "the field a.b is absent"),
        ("'{a.b}'", {"a": [{"b": 1}, {}]}, "the field a.b is absent"),
        ("'{a[1]}'", {"a": [1]}, "the field a[1] is absent: the array has 1"),
        ("'{a}'", {"a": {"b": 1}}, "the field a is an object"),
        ("'{a}'^^xsd:integer", {"a": "warm"}, "the field a is no xsd:integer: 'warm'"),
        ("'{a}'^^xsd:integer", {"a": 1.5}, "the field a is no xsd:integer: '1.5'"),
        ("'{a}'^^xsd:double", {"a": True}, "the field a is no xsd:double: 'true'"),
        ("'{a}'^^xsd:boolean", {"a": "yes"}, "the field a is no xsd:boolean: 'yes'"),
        ("'{$topic[3]}'", {}, "the field $topic[3] is absent: the topic is factory/3/vibration"),
        ("'{$header.other}'", {}, "the field $header.other is absent"),
        ("<{a}>", {"a": ""}, None),
    ],
)
def test_a_message_that_does_not_fit_is_named_by_its_field(field, body, reason):
    if reason is None:
        with pytest.raises(SourceError):
            triples(f":s :p {field} .", body)
        return
    with pytest.raises(UnfitError) as refusal:
        triples(f":s :p {field} .", body)
    assert str(refusal.value) == reason


@pytest.mark.parametrize("name", ["a..b", "a[x]", "[0]", "$other", "$header.", "a."])
def test_a_name_that_is_no_path_is_refused_at_once(name):
    with pytest.raises(SourceError, match=r"is not the path of a field|there is no field"):
        MessageTemplate(f"<urn:s> <urn:p> '{{{name}}}' .", "t.ttl")


def test_fields_of_the_envelope_are_refused_for_files():
    with pytest.raises(SourceError, match="which only messages have"):
        MessageTemplate("<urn:s> <urn:p> '{$key}' .", "t.ttl", has_envelope=False)


values = st.integers(-5, 5) | st.text("abc", max_size=3)


@given(st.lists(st.fixed_dictionaries({"id": values, "v": st.lists(values, max_size=3)})))
@examples(100)
def test_arrays_within_arrays_repeat_as_nested_loops_do(items):
    """The oracle: two loops, which leave out what is empty."""
    expected = {
        f'<urn:{item["id"]}> <urn:p> "{value}"'
        for item in items
        for value in item["v"]
        if str(item["id"]) and str(value)
    }
    template = MessageTemplate("<urn:{items.id}> <urn:p> '{items.v}' .", "t.ttl")
    found = template.element({"items": items}, Envelope(), given=0)[1]
    assert {str(triple) for triple in found} == expected


@given(st.text())
@examples(100)
def test_no_value_changes_the_structure_of_a_triple(text):
    template = MessageTemplate("<urn:s:{a}> <urn:p> '{a}' .", "t.ttl")
    found = template.element({"a": text}, Envelope(), given=0)[1]
    assert [triple.object.value for triple in found] == ([text] if text else [])  # type: ignore[union-attr]


def test_a_template_can_be_sent_to_executors():
    template = MessageTemplate("<urn:{a}> <urn:p> '{$key}' .", "t.ttl", "at")
    for other in (pickle.loads(pickle.dumps(template)), copy.copy(template)):  # noqa: S301 - our own
        body = {"a": 1, "at": 5}
        assert other.element(body, ENVELOPE) == template.element(body, ENVELOPE)


NOT_ISO = "is not of the form 2015-01-06T20:00:22Z: 'soon'"
NOT_JSON = "the line is not JSON: Expecting property name enclosed in double quotes, column 2"


def read(payload: str, **options: Any) -> list[Element | DeadLetter]:
    template = MessageTemplate(
        "<urn:{id}> <urn:v> '{v}'^^xsd:integer .", "t.ttl", options.pop("field", "at")
    )
    reader = Payloads("source", ahead=2**62, template=template, **options)
    message = Message(payload.encode(), "t", key=b"7")
    return list(reader.elements(SpoolRecord(3, 1_000, message)))


def shown(items: list[Element | DeadLetter]) -> list[str]:
    return [
        item.reason
        if isinstance(item, DeadLetter)
        else f"{item.timestamp} {' '.join(map(str, item.triples))}".replace(
            "^^<http://www.w3.org/2001/XMLSchema#integer>", ""
        )
        for item in items
    ]


@pytest.mark.parametrize(
    ("payload", "options", "expected"),
    [
        ('{"id": 1, "v": 2, "at": 5}', {"format": "json"}, ['5 <urn:1> <urn:v> "2"']),
        (
            '{"id": 1, "v": 2, "at": "5"}',
            {"format": "json", "unit": "s"},
            ['5000 <urn:1> <urn:v> "2"'],
        ),
        ('{"id": 1, "v": 2}', {"format": "json"}, ["the field at is absent"]),
        (
            '{"id": 1, "v": 2, "at": [1]}',
            {"format": "json"},
            ["the field at is an array: it has no single time"],
        ),
        (
            '{"id": 1, "v": 2, "at": "soon"}',
            {"format": "json"},
            ["the time in the field at " + NOT_ISO],
        ),
        ('{"id": 1, "v": 2}', {"format": "json", "time": "arrival"}, ['1000 <urn:1> <urn:v> "2"']),
        ('{"id": 1, "v": 2}', {"format": "json", "time": "key"}, ['7 <urn:1> <urn:v> "2"']),
        (
            '[{"id": 1, "v": 2, "at": 5}, {"id": 1, "at": 6}, {"id": 2, "v": 3, "at": 7}]',
            {"format": "json"},
            ['5 <urn:1> <urn:v> "2"', "the field v is absent", '7 <urn:2> <urn:v> "3"'],
        ),
        ("{", {"format": "json"}, [NOT_JSON]),
        ("id,v,at\n1,2,5\n2,,6\n", {"format": "csv"}, ['5 <urn:1> <urn:v> "2"', "6 "]),
        (
            "1;2;5",
            {"format": "csv", "delimiter": ";", "columns": ("id", "v", "at")},
            ['5 <urn:1> <urn:v> "2"'],
        ),
        ("1,2", {"format": "csv", "columns": ("id", "v", "at")}, ["row 1 has 2 fields, not 3"]),
    ],
)
def test_messages_are_read_by_a_template(payload, options, expected):
    assert shown(read(payload, **options)) == expected


def test_files_of_plain_json_are_read_in_splits(tmp_path):
    (tmp_path / "t.ttl").write_text("<urn:{id}> <urn:v> '{v}' .")
    lines = [json.dumps({"id": n, "v": n % 3, "at": {"s": n}}) for n in range(100)]
    (tmp_path / "data.json").write_text("\n".join([*lines, '{"id": 1}']))
    source: Any = open_source(f"{tmp_path}/data.json?template={tmp_path}/t.ttl&time=at.s&unit=s")
    whole = list(source)
    assert [item.timestamp for item in whole[:-1]] == [1000 * n for n in range(100)]
    assert whole[-1].reason == "the field at.s is absent"
    parts = [item for split in source.cut(500) for item in source.part(split)]
    assert len(list(source.cut(500))) > 3
    assert [getattr(item, "triples", None) for item in parts] == [
        getattr(item, "triples", None) for item in whole
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("format=json", "this format needs a template"),
        ("format=turtle&template=t.ttl", "turtle takes no option template"),
        ("format=json&template=none.ttl", "the template cannot be read"),
    ],
)
def test_options_of_a_live_source_that_do_not_fit_are_refused(options, message):
    with pytest.raises(SourceError, match=message):
        open_source(f"mqtt://localhost/t?{options}")
