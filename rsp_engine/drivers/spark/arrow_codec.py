"""What executors send to the driver: reduced places as rows of Arrow tables.

kind      what it tells
place     which place was read; in `text` why its elements have to be looked at one by one
segment   the times of its first and its latest element, and how many there were
parcel    of the segment before: its pane, and its triples or its solutions
letter    something that was set aside, and the latest time before it in its place
name      an element with blank nodes
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rsp_engine.drivers.splits.segments import PaneContent, PlacedLetter, Segment
from rsp_engine.drivers.splits.split_reducer import ReducedSplit
from rsp_engine.io.sources.splits import Split
from rsp_engine.model.streams import DeadLetter
from rsp_engine.model.terms.lazy_text import WrittenRows, WrittenTriples
from rsp_engine.model.terms.ntriples import triples_text
from rsp_engine.model.windows import Pane
from rsp_engine.operators.scoring.exact_scores import NumberKind
from rsp_engine.operators.sparql.pane_matcher import Matched

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyoxigraph import Triple

__all__ = ["ARROW_COLUMNS", "ARROW_SCHEMA", "from_rows", "to_rows"]

ARROW_COLUMNS = (
    "seq bigint, kind string, step int, scan int, first bigint, last bigint, time bigint,"
    " text string, data binary, texts array<string>, times array<bigint>, numbers array<double>"
)
ARROW_SCHEMA = pa.schema(
    {
        "seq": pa.int64(),
        "kind": pa.string(),
        "step": pa.int32(),
        "scan": pa.int32(),
        "first": pa.int64(),
        "last": pa.int64(),
        "time": pa.int64(),
        "text": pa.string(),
        "data": pa.binary(),
        "texts": pa.list_(pa.string()),
        "times": pa.list_(pa.int64()),
        "numbers": pa.list_(pa.float64()),
    }
)

Row = dict[str, Any]


def to_rows(seq: int, source: int, place: Split, reduced: ReducedSplit) -> pa.RecordBatch:
    """Return a place as rows, in their order; `seq` orders the places of all sources."""
    rows = _rows(source, place, reduced)
    return pa.RecordBatch.from_pylist([{"seq": seq, **row} for row in rows], ARROW_SCHEMA)


def _rows(source: int, place: Split, reduced: ReducedSplit) -> Iterator[Row]:
    yield {
        "kind": "place",
        "text": reduced.trouble,
        "step": int(reduced.lasts),
        "scan": source,
        "first": place.start,
        "last": place.end,
        "time": place.line,
    }
    for time, name, count in reduced.names:
        yield {"kind": "name", "time": time, "text": name, "step": count}
    for item in reduced.items:
        if isinstance(item, PlacedLetter):
            yield _letter_row(item)
            continue
        yield {
            "kind": "segment",
            "first": item.timestamp,
            "last": item.high,
            "step": item.elements,
            "time": item.triples,
            "scan": item.between_windows,
        }
        yield from map(_parcel_row, item.parcels)


def _letter_row(item: PlacedLetter) -> Row:
    letter = item.letter
    row = {"kind": "letter", "first": item.after, "time": letter.position, "data": letter.raw}
    return {**row, "texts": [letter.source, letter.reason]}


def _parcel_row(parcel: PaneContent) -> Row:
    row = {
        "kind": "parcel",
        "step": parcel.step,
        "scan": parcel.scan,
        "first": parcel.pane.first,
        "last": parcel.pane.last,
    }
    content = parcel.content
    if isinstance(content, WrittenTriples):
        return {**row, "text": content.text}
    if not isinstance(content, Matched):
        return {**row, "text": triples_text(content)}
    kind = None if content.kind is None else " ".join(map(str, content.kind)).encode()
    found: Row = {"times": content.times, "numbers": content.numbers, "texts": content.keys}
    found["data"] = kind
    return {**row, "time": content.width, "text": "\n".join(content.texts()), **found}


def from_rows(table: pa.Table) -> list[tuple[int, Split, ReducedSplit]]:
    """Return the places of a table in order, each with its source; rows of one stand together."""
    numbers = table.column("seq").to_numpy()
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    slices = sorted((int(numbers[a]), a, b) for a, b in pairwise(starts) if a < b)
    return [_place(table.slice(a, b - a).combine_chunks().to_batches()[0]) for _, a, b in slices]


def _place(batch: pa.RecordBatch) -> tuple[int, Split, ReducedSplit]:
    first = batch.slice(0, 1).to_pylist()[0]
    place = Split(first["first"], first["last"], first["time"])
    return first["scan"], place, _reduced(batch)


def _reduced(batch: pa.RecordBatch) -> ReducedSplit:
    plain = ["kind", "step", "scan", "first", "last", "time", "text"]
    columns = {name: batch.column(name).to_pylist() for name in plain}
    items: list[Segment | PlacedLetter] = []
    names: list[tuple[int, str, int]] = []
    trouble, lasts = None, False
    parcels: list[PaneContent] = []
    for place, kind in enumerate(columns["kind"]):
        row = {name: column[place] for name, column in columns.items()}
        match kind:
            case "place":
                trouble, lasts = row["text"], bool(row["step"])
            case "name":
                names.append((row["time"], row["text"], row["step"]))
            case "letter":
                source, reason = batch.column("texts")[place].as_py()
                raw = batch.column("data")[place].as_py()
                letter = DeadLetter(source, row["time"], raw, reason)
                items.append(PlacedLetter(letter, row["first"]))
            case "segment":
                parcels = []
                counts = row["step"], row["time"], row["scan"]
                items.append(Segment(row["first"], row["last"], *counts, parcels))
            case _:
                pane = Pane(row["first"], row["last"])
                content = _content(batch, place, row)
                parcels.append(PaneContent(row["step"], row["scan"], pane, content))
    return ReducedSplit(items, names, trouble, lasts)


def _content(batch: pa.RecordBatch, place: int, row: Row) -> Sequence[Triple] | Matched:
    if row["time"] is None:
        return WrittenTriples(row["text"])
    times = batch.column("times")[place].values.to_numpy().astype(np.int64)
    numbers = batch.column("numbers")[place].values.to_numpy().astype(np.float64)
    texts = row["text"].split("\n") if len(times) else []
    keys = batch.column("texts")[place].as_py()
    kind = _kind(batch.column("data")[place].as_py())
    return Matched(WrittenRows(row["time"], texts), times, numbers, keys, kind)


def _kind(data: bytes | None) -> NumberKind | None:
    if data is None:
        return None
    name, digits = data.decode().split()
    return NumberKind(name, int(digits))  # type: ignore[arg-type]
