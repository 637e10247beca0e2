"""Pane tables: what is read back is what was written, whatever its form was."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pyoxigraph as ox
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.drivers.panes.pane_table import bucketed, decode_pane, encode_pane
from rsp_engine.model.terms.columns import ColumnRows, NumberColumn, TermColumn
from rsp_engine.model.terms.lazy_text import WrittenRows, WrittenTriples
from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.operators.scoring.exact_scores import NumberKind
from rsp_engine.operators.sparql.pane_matcher import PaneSolutions
from tests.thoroughness import examples

XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = [
    "<http://example.org/a>",
    "<http://example.org/\u00e9>",
    '"a\\tb\\n"',
    '"x"@en',
    f'"7"^^<{XSD}integer>',
    "",
]
kinds = st.sampled_from((None, NumberKind("exact", 2), NumberKind("double")))


@st.composite
def solutions(draw: st.DrawFn) -> PaneSolutions:
    """Draw solutions as terms, as lines, or as columns."""
    width, count = draw(st.integers(0, 3)), draw(st.integers(0, 6))
    row = st.lists(st.sampled_from(TERMS), min_size=width, max_size=width)
    rows = draw(st.lists(row, min_size=count, max_size=count))
    numbers = draw(st.lists(st.floats(width=32), min_size=count, max_size=count))
    times = draw(st.lists(st.integers(-(2**40), 2**40), min_size=count, max_size=count))
    keys = draw(st.none() | st.just([str(number) for number in numbers]))
    written = WrittenRows(width, ["\t".join(each) for each in rows])
    found = PaneSolutions(
        written, np.array(times, dtype=np.int64), np.array(numbers), keys, draw(kinds)
    )
    form = draw(st.sampled_from(("lines", "terms", "columns")))
    if form == "terms":
        return found.read()
    if form == "columns" and width:
        columns: list[TermColumn | NumberColumn] = [
            TermColumn(np.arange(count)[::-1].copy(), list(reversed(texts)))
            for texts in zip(*rows, strict=True)
        ] or [TermColumn(np.arange(0), []) for _ in range(width)]
        whole = np.array([float(int(time)) for time in times])
        columns.append(NumberColumn(whole % 1000, np.full(count, 1)))
        return found._replace(solutions=ColumnRows(tuple(columns)))
    return found


def shown(matched: PaneSolutions) -> list[tuple[object, ...]]:
    """Return solutions in a form that can be compared; NaN is the same as itself."""
    keys = [None] * len(matched.times) if matched.keys is None else matched.keys
    columns = matched.texts(), matched.times.tolist(), map(repr, matched.numbers.tolist()), keys
    return [(*row, matched.kind) for row in zip(*columns, strict=True)]


@examples(100)
@given(solutions())
def test_solutions_are_read_back_as_they_were_written(matched):
    found = decode_pane(encode_pane(matched))
    assert isinstance(found, PaneSolutions)
    assert shown(found) == shown(matched)
    assert list(map(row_text, found.solutions)) == list(matched.texts())


@examples(60)
@given(solutions(), st.sampled_from((1, 3, 16)), st.data())
def test_each_solution_is_in_the_bucket_of_its_key(matched, buckets, data):
    width = matched.width
    if not width or not len(matched.times):
        assert list(bucketed(matched, (0,), buckets)) == [None] * buckets
        return
    keys = tuple(data.draw(st.sets(st.integers(0, width - 1), min_size=1)))
    expected: list[list[tuple[object, ...]]] = [[] for _ in range(buckets)]
    for each in shown(matched):
        key = "\t".join([str(each[0]).split("\t")[place] for place in keys])
        expected[crc32(key.encode()) % buckets].append(each)
    parts = list(bucketed(matched, keys, buckets))
    assert [[] if part is None else shown(part) for part in parts] == expected


def test_triples_stay_lines():
    a = ox.NamedNode("http://example.org/a")
    triples = [ox.Triple(a, a, ox.Literal("b\n")), ox.Triple(a, a, ox.BlankNode("x"))]
    text = "\n".join(map(str, triples))
    for content in (triples, WrittenTriples(text)):
        found = decode_pane(encode_pane(content))
        assert isinstance(found, WrittenTriples)
        assert found.text == text
