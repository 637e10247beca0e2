"""Parquet: rows by a template, in splits of row groups."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rsp_engine.errors import SourceError
from rsp_engine.io.sources import open_source
from rsp_engine.model.streams import DeadLetter

ROWS = [
    {
        "at": datetime.fromtimestamp(n, UTC),
        "sensor": {"id": f"s{n}"},
        "values": [Decimal(n) / 2, Decimal(n)],
        "seconds": n,
    }
    for n in range(100)
]
TEMPLATE = "<urn:{sensor.id}> <urn:v> '{values}'^^xsd:decimal ."


@pytest.fixture
def source(tmp_path) -> Any:
    (tmp_path / "t.ttl").write_text(TEMPLATE)
    rows = [*ROWS[:50], {**ROWS[50], "sensor": {"id": None}, "values": None}, *ROWS[51:]]
    table = pa.Table.from_pylist([*rows, {**ROWS[99], "at": None}])
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=10)
    return lambda options: open_source(
        f"{tmp_path}/data.parquet?template={tmp_path}/t.ttl{options}"
    )


@pytest.mark.parametrize("options", ["&time=at", "&time=seconds&unit=s"])
def test_rows_become_triples_by_a_template(source, options):
    items = list(source(options))[:100]
    assert [item.timestamp for item in items] == [1_000 * n for n in range(100)]
    values = [[float(triple.object.value) for triple in item.triples] for item in items]
    expected: list[list[float]] = [[n / 2, n] for n in range(100)]
    expected[0], expected[50] = [0.0], []
    assert values == expected


def test_a_row_that_does_not_fit_is_set_aside(source):
    *_, last = source("&time=at")
    assert isinstance(last, DeadLetter)
    assert (last.position, last.reason.partition(" is")[0]) == (101, "the time in the field at")


@pytest.mark.parametrize("size", [1, 500, 1_000_000])
def test_splits_give_the_rows_of_the_file(source, size):
    whole = source("&time=at")
    splits = list(whole.cut(size))
    assert [split.end for split in splits][-1] is None
    items = [
        (item.position + whole.lines_before(split), getattr(item, "triples", item.raw))
        for split in splits
        for item in whole.part(split)
    ]
    assert items == [(item.position, getattr(item, "triples", item.raw)) for item in whole]
    if size == 1:
        assert len(splits) == 11
        assert list(whole.cut(size, splits[3])) == splits[4:]


def test_another_file_is_refused(tmp_path):
    (tmp_path / "t.ttl").write_text(TEMPLATE)
    (tmp_path / "data.parquet").write_text("no Parquet")
    with pytest.raises(SourceError, match="it is not Parquet"):
        open_source(f"{tmp_path}/data.parquet?template={tmp_path}/t.ttl")
