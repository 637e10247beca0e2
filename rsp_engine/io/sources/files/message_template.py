"""Message templates: plain JSON as triples, by a template whose fields are paths.

    <http://example.org/{$topic[1]}/{sensor.id}> :temperature "{readings.celsius}"^^xsd:double .

    {sensor.id}         a member of a member; {tags[0]} is the first item of an array
    {readings.celsius}  an array on the way repeats the triples that use it, once for each item
    {$topic}            the topic of the message; {$topic[0]} is its first level, between slashes
    {$key}              the key of a message of Kafka
    {$header.name}      a header of it

Fields of one triple that are in the same array are of the same item. A triple with a field that is
null or empty is left out. A message in which a field is absent, or of another type than its place
needs, does not fit: no part of it becomes triples.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.files.json_element import UnfitError
from rsp_engine.io.sources.files.template import Template
from rsp_engine.io.sources.times import from_json, from_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyoxigraph import Triple

    from rsp_engine.io.sources.files.template import WrittenTriple
    from rsp_engine.io.sources.times import TimeUnit

__all__ = ["FORMS", "Envelope", "MessageTemplate", "time_of_value"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
FORMS = {
    f"{_XSD}{name}": re.compile(form)
    for name, form in {
        "boolean": r"true|false|0|1",
        "integer": r"[+-]?[0-9]+",
        "decimal": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)",
        "float": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN",
        "double": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN",
    }.items()
}
"""The lexical forms of datatypes by which scores are computed (XML Schema 1.1, section 3.3)."""
_PATH = re.compile(r"[^.\[\]]+(\[[0-9]+\])*(\.[^.\[\]]+(\[[0-9]+\])*)*")
_STEP = re.compile(r"([^.\[\]]+)|\[([0-9]+)\]")
_TOPIC = re.compile(r"\$topic(?:\[([0-9]+)\])?")
_HEADER = "$header."

Place = tuple[tuple[str, int], ...]
"""Which item of each array a value is in: pairs of the path of an array and an index."""


class Envelope(NamedTuple):
    """What a message has besides its payload."""

    topic: str = ""
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a template."""

    name: str
    steps: tuple[str | int, ...]
    """The path in the body; none for a field of the envelope."""

    @property
    def flat_steps(self) -> tuple[str, ...]:
        """The path, if it names no item of an array; else nothing."""
        names = tuple(step for step in self.steps if isinstance(step, str))
        return names if len(names) == len(self.steps) else ()

    def text(self, value: object, datatype: str | None) -> str:
        """Return a value as text; raise `UnfitError` if its type does not fit."""
        match value:
            case None:
                return ""
            case bool():
                text = "true" if value else "false"
            case int() | float() | str():
                text = str(value)
            case _:
                kind = "an array" if isinstance(value, list) else "an object"
                raise UnfitError(f"the field {self.name} is {kind}")
        self._check(text, datatype)
        return text

    def _check(self, text: str, datatype: str | None) -> None:
        if not text or datatype is None:
            return
        form = FORMS.get(datatype)
        if form is not None and not form.fullmatch(text):
            local = datatype.removeprefix(_XSD)
            raise UnfitError(f"the field {self.name} is no xsd:{local}: {text[:40]!r}")

    def of_envelope(self, envelope: Envelope) -> str:
        """Return the text of a field of the envelope."""
        if topic := _TOPIC.fullmatch(self.name):
            levels = envelope.topic.split("/")
            level = None if topic[1] is None else int(topic[1])
            if level is not None and level >= len(levels):
                raise UnfitError(f"the field {self.name} is absent: the topic is {envelope.topic}")
            return envelope.topic if level is None else levels[level]
        headers = dict(envelope.headers)
        data = envelope.key if self.name == "$key" else headers.get(self.name[len(_HEADER) :])
        if data is None:
            raise UnfitError(f"the field {self.name} is absent")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise UnfitError(f"the field {self.name} is not UTF-8") from None

    def of_body(self, body: object) -> Iterator[tuple[Place, object]]:
        """Yield the values of a path, each with its place in the arrays on the way."""
        reached: list[tuple[Place, object]] = [((), body)]
        path = ""
        for step in self.steps:
            if isinstance(step, str):
                reached = list(_items(reached, path))
            path += f".{step}"
            reached = [(place, self._member(value, step)) for place, value in reached]
        return _items(reached, path)

    def _member(self, value: object, step: str | int) -> object:
        if isinstance(step, int):
            if not isinstance(value, list):
                raise UnfitError(f"the field {self.name} is absent: there is no array")
            if step >= len(value):
                raise UnfitError(f"the field {self.name} is absent: the array has {len(value)}")
            return value[step]
        if not isinstance(value, dict) or step not in value:
            raise UnfitError(f"the field {self.name} is absent")
        return value[step]


def _items(reached: Sequence[tuple[Place, object]], path: str) -> Iterator[tuple[Place, object]]:
    """Yield values, the items of an array each with its index."""
    for place, value in reached:
        if isinstance(value, list):
            yield from ((((*place, (path, index))), item) for index, item in enumerate(value))
        else:
            yield place, value


class MessageTemplate:
    """A template of messages, and the field of their time.

    >>> template = MessageTemplate("<urn:{id}> <urn:p> '{tags}' .", "t.ttl")
    >>> time, triples = template.element({"id": 7, "tags": ["a", "b"], "timestamp": 5}, Envelope())
    >>> time, *map(str, triples)
    (5, '<urn:7> <urn:p> "a"', '<urn:7> <urn:p> "b"')
    """

    def __init__(
        self, text: str, name: str, time: str = "timestamp", *, has_envelope: bool = True
    ) -> None:
        """Parse a template; without an envelope, fields of it are refused."""
        self._made_of = text, name, time, has_envelope
        self._name = name
        self._has_envelope = has_envelope
        self._time = _Field(time, self._steps(time))
        self._numbers: dict[str, int] = {}
        self._fields: list[_Field] = []
        """The fields of the template, by number."""
        self._template = Template(text, name, self._number_of)

    def element(
        self,
        body: object,
        envelope: Envelope,
        given: int | None = None,
        unit: TimeUnit = "ms",
    ) -> tuple[int, tuple[Triple, ...]]:
        """Return the time and the triples of a message; `given` replaces the time of its field.

        Raise `UnfitError` if it does not fit into the template.
        """
        time = self._time_in(body, unit) if given is None else given
        values = [self._values(number, body, envelope) for number in range(len(self._fields))]
        try:
            if all(len(value) == 1 and not value[0][0] for value in values):
                return time, self._template.triples([value[0][1] for value in values])
            return time, tuple(dict.fromkeys(self._repeated(values)))
        except UnicodeEncodeError:
            raise UnfitError("a field holds half a character: a lone surrogate") from None
        except ValueError as error:
            raise UnfitError(f"it does not fit into the template: {error}") from None

    @property
    def written(self) -> list[WrittenTriple] | None:
        """How to write the triples of a message; None if that takes a closer look."""
        forms = [pattern.written for pattern in self._template.patterns]
        known = [form for form in forms if form is not None]
        return known if len(known) == len(forms) and any(form.slots for form in known) else None

    @property
    def field_steps(self) -> list[tuple[str, ...]]:
        """The path of each field; empty if it is not in the body, or names an item of an array."""
        return [field.flat_steps for field in self._fields]

    @property
    def time_steps(self) -> tuple[str, ...]:
        """The path of the time; empty if it names an item of an array."""
        return self._time.flat_steps

    @property
    def datatypes(self) -> Mapping[int, str]:
        """The datatypes of fields that are whole literals, by the number of the field."""
        return self._template.datatypes

    def _time_in(self, body: object, unit: TimeUnit) -> int:
        values = list(self._time.of_body(body))
        if len(values) != 1 or values[0][0]:
            raise UnfitError(f"the field {self._time.name} is an array: it has no single time")
        try:
            return time_of_value(values[0][1], unit)
        except ValueError as error:
            raise UnfitError(f"the time in the field {self._time.name} {error}") from None

    def _values(self, number: int, body: object, envelope: Envelope) -> list[tuple[Place, str]]:
        field = self._fields[number]
        datatype = self._template.datatypes.get(number)
        if not field.steps:
            return [((), field.text(field.of_envelope(envelope), datatype))]
        return [(place, field.text(value, datatype)) for place, value in field.of_body(body)]

    def _repeated(self, values: Sequence[Sequence[tuple[Place, str]]]) -> Iterator[Triple]:
        """Yield each triple once for each combination of items that agree on their arrays."""
        for pattern in self._template.patterns:
            rows: list[tuple[dict[str, int], dict[int, str]]] = [({}, {})]
            for field in pattern.fields:
                rows = [
                    ({**places, **dict(place)}, {**row, field: text})
                    for places, row in rows
                    for place, text in values[field]
                    if text and all(places.get(path, index) == index for path, index in place)
                ]
            yield from (pattern.triple(row) for _, row in rows)

    def _number_of(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._fields)
            self._fields.append(_Field(name, self._steps(name)))
        return self._numbers[name]

    def _steps(self, name: str) -> tuple[str | int, ...]:
        """Return the path of a field; none for one of the envelope."""
        if name.startswith("$"):
            self._check_envelope(name)
            return ()
        if _PATH.fullmatch(name) is None:
            message = f"{self._name}: {name} is not the path of a field"
            raise SourceError(
                message, "write names joined by dots, and [0] for an item of an array"
            )
        return tuple(member or int(index) for member, index in _STEP.findall(name))

    def _check_envelope(self, name: str) -> None:
        is_header = name.startswith(_HEADER) and len(name) > len(_HEADER)
        if name != "$key" and not _TOPIC.fullmatch(name) and not is_header:
            message = f"{self._name}: there is no field {name}"
            raise SourceError(message, "the others are $topic, $topic[0], $key and $header.NAME")
        if not self._has_envelope:
            message = f"{self._name}: the template names {name}, which only messages have"
            raise SourceError(message, "name fields of the text")

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _remade, self._made_of


def time_of_value(value: object, unit: TimeUnit) -> int:
    """Return the time that a value of JSON states; raise `ValueError` if it states none."""
    return from_text(value, unit) if isinstance(value, str) else from_json(value, unit)


def _remade(text: str, name: str, time: str, has_envelope: bool) -> MessageTemplate:
    return MessageTemplate(text, name, time, has_envelope=has_envelope)
