r"""The reader of lines of plain JSON: a template writes the triples of many lines at once.

    {"room": "lab", "celsius": 24.5, "at": 7}
    <http://a.org/{room}> <http://a.org/p> "{celsius}" .

Arrow reads the lines: each field of the template becomes a column of texts. The template joins them
to a text of triples, whose terms are located as those of N-Quads if columns suffice; else it is
parsed. The first line tells the types of the fields. A line in which a field is absent, null or
empty, or has not the form of its datatype, is left to the template by itself. So are all lines, if
one of them is not an object, or has a field of another type.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyoxigraph as ox

from rsp_engine.io.sources.batch import ElementBatch
from rsp_engine.io.sources.columns.numbered_quads import NumberedQuads, with_parsed_lines
from rsp_engine.io.sources.columns.plain_lines import TRIPLES
from rsp_engine.io.sources.files.blocks import lines as lines_of
from rsp_engine.io.sources.files.message_template import FORMS, time_of_value
from rsp_engine.io.sources.files.template import encode_for_iri, escape_literal
from rsp_engine.io.sources.times import in_milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from rsp_engine.io.sources.columns.numbered_quads import ParseLine
    from rsp_engine.io.sources.columns.quad_lines import ReadQuads, Rename
    from rsp_engine.io.sources.files.blocks import TextBlock
    from rsp_engine.io.sources.files.message_template import MessageTemplate
    from rsp_engine.io.sources.files.template import SlotKind, WrittenTriple
    from rsp_engine.io.sources.times import TimeUnit
    from rsp_engine.model.arrays import Booleans, Integers
    from rsp_engine.model.streams import DeadLetter, Element

    Steps = tuple[str, ...]

__all__ = ["batches_of_lines", "read_templated_lines"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_LINE = 4_000
"""Bytes of a line: in a longer one, a number may have more digits than Python reads."""
_NEWLINE, _OPEN, _CLOSE = b"\n{}"
_ARROW_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_SPECIAL = r'["\\\x00-\x1f\x7f]'
"""What is escaped in a literal."""
_LEAST, _MOST = 1e-4, 1e9
"""Numbers in between are written without an exponent, which decimals cannot have."""
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"


def read_templated_lines(
    data: bytes, template: MessageTemplate, unit: TimeUnit, parse: ParseLine, rename: Rename
) -> ReadQuads | None:
    """Read a text of whole lines of JSON; None if it must be read as elements.

    `parse` reads a line that needs a closer look, given its number.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK)
    written = _write(data, template, unit)
    if written is None:
        return None
    counts = np.full(len(written.numbers), written.triples)
    quads = NumberedQuads.of_graphs(written.text, counts, written.times, TRIPLES)
    found = NumberedQuads(quads.lines, written.numbers[quads.numbers])
    ends = written.ends

    def line_of(number: int) -> bytes:
        return data[int(ends[number - 1]) + 1 if number else 0 : int(ends[number]) + 1]

    return with_parsed_lines(found, len(ends), line_of, parse, rename)


def batches_of_lines(
    name: str, block: TextBlock, template: MessageTemplate, unit: TimeUnit, parse: ParseLine
) -> Iterator[ElementBatch | Element | DeadLetter]:
    """Yield the elements of a block of lines, and what `parse` makes of the other lines."""
    raws = [*lines_of(block)]
    numbers, batch = _parsed(name, block, template, unit, raws)
    done = 0
    others = sorted({*range(len(raws))} - {*numbers})
    for other in [*others, len(raws)]:
        upto = bisect_left(numbers, other)
        if upto > done:
            yield batch.between(done, upto)
        done = upto
        if other < len(raws) and raws[other][1].strip():
            yield parse(*raws[other])


def _parsed(
    name: str,
    block: TextBlock,
    template: MessageTemplate,
    unit: TimeUnit,
    raws: Sequence[tuple[int, bytes]],
) -> tuple[Sequence[int], ElementBatch]:
    """Return the indices of the lines that need no closer look, and their elements."""
    nothing = ElementBatch(name, [], [], [0], [], [])
    written = _write(block.data, template, unit)
    if written is None:
        return (), nothing
    try:
        parsed = [*ox.parse(written.text, ox.RdfFormat.N_TRIPLES)]
    except SyntaxError:
        return (), nothing
    numbers = written.numbers.tolist()
    if len(parsed) != written.triples * len(numbers):
        return (), nothing
    triples: list[ox.Triple] = []
    starts = [0]
    for at in range(0, len(parsed), written.triples):
        triples += dict.fromkeys(quad.triple for quad in parsed[at : at + written.triples])
        starts.append(len(triples))
    places = [block.line + number for number in numbers]
    lines = [raws[number][1] for number in numbers]
    return numbers, ElementBatch(name, written.times.tolist(), triples, starts, places, lines)


class _Written(NamedTuple):
    """The triples of some lines as a text of N-Triples."""

    text: bytes
    numbers: Integers
    """The numbers of the lines, from 0; the others need a closer look."""
    times: Integers
    triples: int
    """How many triples a line has."""
    ends: Integers
    """Where each line ends, also the others."""


def _write(data: bytes, template: MessageTemplate, unit: TimeUnit) -> _Written | None:
    """Write the triples of lines; None if each line needs a closer look."""
    forms = template.written
    ends = _ends(data)
    if forms is None or ends is None:
        return None
    try:
        rows = _Rows(data, template, forms)
        if rows.count != len(ends):
            return None
        times, are_good = rows.times(template.time_steps, unit)
        slots = [rows.slot(field, kind) for each in forms for field, kind in each.slots]
    except (_UnlikeError, pa.ArrowException, UnicodeError):
        return None
    are_good &= rows.are_good
    pieces = "".join(each.form for each in forms).split("%s")
    texts = [pa.scalar(piece.replace("%%", "%")) for piece in pieces]
    if not are_good.all():
        chosen = pa.array(are_good)
        slots, times = [slot.filter(chosen) for slot in slots], times[are_good]
    woven = [each for pair in zip(texts, slots, strict=False) for each in pair]
    joined = pc.binary_join_element_wise(*woven, texts[-1], pa.scalar(""))
    text = _joined(joined)
    return _Written(text, np.flatnonzero(are_good), times, len(forms), ends)


def _ends(data: bytes) -> Integers | None:
    """Return the ends of lines that may be objects; None if there are others.

    If each line begins and ends with a brace, no object goes on over the end of a line: within
    one, no value is followed by a brace that opens.
    """
    source = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(source == _NEWLINE)
    if data and not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.r_[0, ends[:-1] + 1]
    if not len(ends) or (ends - starts < len("{}")).any() or (ends - starts).max() > _LONGEST_LINE:
        return None
    if (source[starts] != _OPEN).any() or (source[ends - 1] != _CLOSE).any():
        return None
    return ends


class _UnlikeError(Exception):
    """Lines are not so much alike that they become columns."""


class _Rows:
    """The fields of lines, as columns."""

    def __init__(
        self, data: bytes, template: MessageTemplate, forms: Sequence[WrittenTriple]
    ) -> None:
        if not data.isascii():
            data.decode()  # which Arrow does not check
        try:
            first = json.loads(data[: data.find(b"\n") if b"\n" in data else None])
        except (ValueError, RecursionError):
            raise _UnlikeError from None
        self._template = template
        self._numbers = _whole_numbers(forms)
        self._table = _read(data, self._schema(first))
        self.count = self._table.num_rows
        self.are_good: Booleans = np.ones(self.count, dtype=np.bool_)
        """Which rows need no closer look."""
        self._texts: dict[int, Any] = {}
        for field in range(len(template.field_steps)):
            self._texts[field] = self._text(field)

    def _schema(self, first: object) -> pa.Schema:
        """Return the types of the fields, by the first line."""
        tree: dict[str, Any] = {}
        template = self._template
        for number, steps in enumerate((*template.field_steps, template.time_steps)):
            value = first
            node = tree
            for step in steps:
                value = value.get(step) if isinstance(value, dict) else None
            kind = float if number in self._numbers and type(value) is int else type(value)
            if kind not in _ARROW_TYPES or not steps:
                raise _UnlikeError
            for step in steps[:-1]:
                node = node.setdefault(step, {})
            known = node.setdefault(steps[-1], _ARROW_TYPES[kind])
            if known != _ARROW_TYPES[kind]:
                raise _UnlikeError  # the time is also the whole of a number
        return pa.schema(_fields(tree))

    def _column(self, steps: Steps) -> Any:  # noqa: ANN401 - an array of Arrow
        column = self._table.column(steps[0]).combine_chunks()
        return pc.struct_field(column, list(steps[1:])) if len(steps) > 1 else column

    def _text(self, field: int) -> Any:  # noqa: ANN401 - an array of Arrow
        """Return the texts of a field; note those that need a closer look."""
        column = self._column(self._template.field_steps[field])
        if pa.types.is_floating(column.type):
            if field not in self._numbers:
                raise _UnlikeError  # Arrow writes them in another way than Python
            values: NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
            sizes = np.abs(values)
            are_short = (sizes >= _LEAST) & (sizes < _MOST) | (values == 0)
            is_double = self._template.datatypes[field] == _DOUBLE
            self.are_good &= np.isfinite(values) if is_double else are_short
            self.are_good &= ~np.signbit(values) | (sizes > 0)  # -0 may be a whole number
        texts = column if pa.types.is_string(column.type) else pc.cast(column, pa.string())
        form = FORMS.get(self._template.datatypes.get(field, ""))
        are_good = (
            pc.greater(pc.binary_length(texts), 0)
            if form is None or pa.types.is_floating(column.type)
            else pc.match_substring_regex(texts, f"^(?:{form.pattern})$")
        )
        self.are_good &= _booleans(are_good)
        return texts

    def times(self, steps: Steps, unit: TimeUnit) -> tuple[Integers, Booleans]:
        """Return the time of each line, and which lines have one."""
        column = self._column(steps)
        have_time = np.ones(self.count, dtype=np.bool_)
        if pa.types.is_integer(column.type) and not column.null_count:
            numbers: Integers = column.to_numpy()
            if unit == "ms":
                return numbers, have_time
            times = in_milliseconds(numbers, unit) if (numbers >= 0).all() else None
            if times is not None:
                return times, have_time
        found = np.zeros(self.count, dtype=np.int64)
        for row, value in enumerate(column.to_pylist()):
            try:
                found[row] = time_of_value(value, unit)
            except ValueError:
                have_time[row] = False
        return found, have_time

    def slot(self, field: int, kind: SlotKind) -> Any:  # noqa: ANN401 - an array of Arrow
        """Return the texts of a field as they are written in a place."""
        texts = self._texts[field]
        if kind == "iri":
            known = texts.dictionary_encode()
            encoded = [encode_for_iri(text) for text in known.dictionary.to_pylist()]
            return pa.array(encoded, pa.string()).take(known.indices)
        if kind == "text" and pc.any(pc.match_substring_regex(texts, _SPECIAL)).as_py():
            plain = [escape_literal(text or "") for text in texts.to_pylist()]
            return pa.array(plain, pa.string())
        return texts


def _whole_numbers(forms: Sequence[WrittenTriple]) -> set[int]:
    """Return the fields that are nothing but the whole of literals of decimals or doubles."""
    slots = [slot for form in forms for slot in form.slots]
    others = {field for field, kind in slots if kind != "number"}
    return {field for field, _ in slots} - others


def _fields(tree: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        (name, pa.struct(_fields(node)) if isinstance(node, dict) else node)
        for name, node in tree.items()
    ]


def _read(data: bytes, schema: pa.Schema) -> pa.Table:
    """Read lines; raise an error of Arrow if one is not an object, or has other types."""
    return pyarrow.json.read_json(
        pa.BufferReader(data),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore"
        ),
    )


def _joined(texts: Any) -> bytes:  # noqa: ANN401 - an array of Arrow
    """Return the texts of an array without nulls, one behind the other, as Arrow stores them."""
    _, offsets, data = texts.buffers()
    edges = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return b"" if data is None else data[int(edges[0]) : int(edges[-1])].to_pybytes()


def _booleans(array: Any) -> Booleans:  # noqa: ANN401 - an array of Arrow
    found: Booleans = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    return found
