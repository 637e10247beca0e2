"""Pane tables: the content of a pane as bytes, which any process can read.

Triples are lines of text; those that match patterns are lists of Arrow, of codes and texts.
Solutions are a table of Arrow: lines of text, or for each variable the codes of its terms in a
dictionary, or numbers with their datatypes; and the arrival time and the number of each solution.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rsp_engine.model.terms.columns import ColumnRows, NumberColumn, TermColumn
from rsp_engine.model.terms.lazy_text import WrittenRows, WrittenTriples
from rsp_engine.model.terms.matched_triples import MatchedTriples
from rsp_engine.model.terms.ntriples import triples_text
from rsp_engine.operators.scoring.exact_scores import NumberKind
from rsp_engine.operators.sparql.pane_matcher import PaneSolutions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.evaluators.step import PutContent
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.terms.columns import TermsColumn

__all__ = ["bucketed", "byte_estimate", "content_rows", "decode_pane", "encode_pane"]

_TRIPLES, _MATCHED, _SOLUTIONS = b"t", b"m", b"s"  # the first byte of a table
_ROW_BYTES = 40  # about, of a solution


def content_rows(content: PutContent) -> int:
    """Return the number of solutions or triples of a content; triples that only count, too."""
    if isinstance(content, PaneSolutions):
        return len(content.times)
    if isinstance(content, MatchedTriples):
        return max(len(content), len(content.fingerprints))
    return len(content)


def byte_estimate(content: PutContent) -> int:
    """Return about how many bytes a content takes as a table."""
    if isinstance(content, WrittenTriples):
        return len(content.text)
    if isinstance(content, PaneSolutions):
        return _ROW_BYTES * len(content.times)
    return 2 * _ROW_BYTES * content_rows(content)


def encode_pane(content: PutContent) -> bytes:
    """Return a content as bytes."""
    if isinstance(content, PaneSolutions):
        return _SOLUTIONS + _encode_solutions(content)
    if isinstance(content, MatchedTriples):
        return _MATCHED + _encode_matched(content)
    text = content.text if isinstance(content, WrittenTriples) else triples_text(content)
    return _TRIPLES + text.encode()


def decode_pane(data: bytes) -> PutContent:
    """Return the content of a table written by `encode_pane`."""
    if data[:1] == _TRIPLES:
        return WrittenTriples(data[1:].decode())
    [batch] = pa.ipc.open_stream(pa.py_buffer(data)[1:])
    return _decode_matched(batch) if data[:1] == _MATCHED else _decode_solutions(batch)


def _encode_matched(triples: MatchedTriples) -> bytes:
    triples = triples.compact()
    sizes, codes = triples.columns()
    lists = {
        "predicates": pa.array([triples.predicates], pa.list_(pa.string())),
        "texts": pa.array([triples.texts], pa.list_(pa.string())),
        "sizes": pa.array([sizes], pa.list_(pa.int64())),
        "codes": pa.array([codes], pa.list_(pa.int64())),
        "fingerprints": pa.array([triples.fingerprints], pa.list_(pa.int64())),
    }
    return _written(pa.RecordBatch.from_pydict(lists))


def _decode_matched(batch: pa.RecordBatch) -> MatchedTriples:
    predicates, texts = (batch.column(name)[0].as_py() for name in ("predicates", "texts"))
    sizes, codes, fingerprints = (
        batch.column(name)[0].values.to_numpy() for name in ("sizes", "codes", "fingerprints")
    )
    return MatchedTriples.of_columns(predicates, texts, (sizes, codes), fingerprints)


def _written(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _encode_solutions(matched: PaneSolutions) -> bytes:
    about = {"width": str(matched.width)}
    if matched.kind is not None:
        about["kind"] = " ".join(map(str, matched.kind))
    rows = matched.solutions
    arrays: dict[str, Any] = {"times": pa.array(matched.times), "numbers": matched.numbers}
    if matched.keys is not None:
        arrays["keys"] = pa.array(matched.keys, pa.string())
    if not isinstance(rows, ColumnRows):
        arrays["lines"] = pa.array(matched.texts(), pa.string())
        return _written(pa.RecordBatch.from_pydict(arrays).replace_schema_metadata(about))
    for number, column in enumerate(rows.columns):
        if isinstance(column, NumberColumn):
            arrays[f"values {number}"] = column.values
            arrays[f"kinds {number}"] = column.kinds.astype(np.int8)
        else:
            used, codes = np.unique(column.codes, return_inverse=True)
            texts = pa.array([column.texts[code] for code in used.tolist()], pa.string())
            indices = pa.array(codes.astype(np.int32))
            arrays[f"terms {number}"] = pa.DictionaryArray.from_arrays(indices, texts)
    return _written(pa.RecordBatch.from_pydict(arrays).replace_schema_metadata(about))


def _decode_solutions(batch: pa.RecordBatch) -> PaneSolutions:
    names, about = batch.schema.names, batch.schema.metadata
    width = int(about[b"width"])
    rows: WrittenRows | ColumnRows
    if "lines" in names:
        rows = WrittenRows(width, batch.column("lines").to_pylist())
    else:
        rows = ColumnRows(tuple(_decode_column(batch, number) for number in range(width)))
    times, numbers = (batch.column(name).to_numpy() for name in ("times", "numbers"))
    keys = batch.column("keys").to_pylist() if "keys" in names else None
    return PaneSolutions(rows, times, numbers, keys, _kind(about.get(b"kind")))


def _decode_column(batch: pa.RecordBatch, number: int) -> TermsColumn:
    if f"terms {number}" in batch.schema.names:
        terms = batch.column(f"terms {number}")
        codes = terms.indices.to_numpy().astype(np.int64)
        return TermColumn(codes, terms.dictionary.to_pylist())
    values, kinds = (batch.column(f"{name} {number}").to_numpy() for name in ("values", "kinds"))
    return NumberColumn(values, kinds.astype(np.int64))


def _kind(text: bytes | None) -> NumberKind | None:
    if text is None:
        return None
    name, digits = text.decode().split()
    return NumberKind(name, int(digits))  # type: ignore[arg-type]


def _columns(matched: PaneSolutions) -> Sequence[TermsColumn]:
    if isinstance(matched.solutions, ColumnRows):
        return matched.solutions.columns
    if not matched.width:
        return []
    every = np.arange(len(matched.times))
    rows = [text.split("\t") for text in matched.texts()]
    return [TermColumn(every, texts) for texts in zip(*rows, strict=True)]


def bucketed(
    matched: PaneSolutions, keys: tuple[int, ...], buckets: int
) -> Iterator[PaneSolutions | None]:
    """Yield the solutions of each bucket of keys; None if a bucket has none.

    A bucket is a checksum of the text of the key: the same in every process.
    """
    columns = _columns(matched)
    if not columns:
        yield from (None for _ in range(buckets))
        return
    matched = matched._replace(solutions=ColumnRows(tuple(columns)))
    numbers = _buckets([columns[place] for place in keys], buckets)
    order = np.argsort(numbers, kind="stable")
    edges = np.searchsorted(numbers[order], np.arange(buckets + 1)).tolist()
    for bucket in range(buckets):
        chosen = order[edges[bucket] : edges[bucket + 1]]
        yield matched.at(chosen) if len(chosen) else None  # type: ignore[arg-type]


def _buckets(keys: Sequence[TermsColumn], buckets: int) -> Integers:
    """Return the bucket of each solution."""
    if len(keys) == 1 and isinstance(keys[0], TermColumn):
        return _checksums(keys[0].texts, buckets)[keys[0].codes]
    return _checksums(ColumnRows(tuple(keys)).texts, buckets)


def _checksums(texts: Sequence[str], buckets: int) -> Integers:
    sums = [zlib.crc32(text.encode()) for text in texts]
    return np.array(sums, dtype=np.int64) % buckets
