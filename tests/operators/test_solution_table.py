"""The table of solutions finds each row as a dict does, also after rows are gone and removed."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.operators.aggregates import solution_table
from rsp_engine.operators.aggregates.solution_table import GONE, SolutionTable
from rsp_engine.operators.aggregates.text_numbers import TextNumbers
from tests.thoroughness import examples

pairs = st.tuples(st.integers(-3, 3), st.integers(0, 2**62))
batches = st.lists(st.tuples(st.lists(pairs, min_size=1, max_size=40), st.integers(1, 4)))


@examples(200)
@given(batches)
def test_rows_are_found_as_in_a_dict(found):
    with patch.multiple(solution_table, _LEAST_SLOTS=4, _FEW_GONE=4):
        table, ends = SolutionTable(2), dict[tuple[int, int], int]()
        for now, (batch, life) in enumerate(found):
            columns = [np.array(column, dtype=np.int64) for column in zip(*batch, strict=True)]
            rows = table.rows(columns)
            assert [table.column(0)[rows].tolist(), table.column(1)[rows].tolist()] == [
                column.tolist() for column in columns
            ]
            assert table.ends[rows].tolist() == [ends.get(pair, GONE) for pair in batch]
            table.extend(np.unique(rows), now + life)
            ends.update(dict.fromkeys(batch, now + life))
            table.drop(np.flatnonzero((table.ends != GONE) & (table.ends <= now)))
            ends = {pair: end for pair, end in ends.items() if end > now}
            numbers = table.compact()
            live = table.ends != GONE
            kept = zip(table.column(0)[live].tolist(), table.column(1)[live].tolist(), strict=True)
            assert dict(zip(kept, table.ends[live].tolist(), strict=True)) == ends
            assert numbers is None or live.all()
            assert len(live) <= 2 * len(ends) + 6 + len(batch)


@examples(100)
@given(st.lists(st.lists(st.text("abc", max_size=2), max_size=6), max_size=12))
def test_texts_keep_their_numbers_while_they_are_in_use(found):
    numbers, uses = TextNumbers(), list[list[str]]()
    for texts in found:
        codes = numbers.of(texts)
        numbers.use(codes)
        uses.append(texts)
        assert [numbers.texts[code] for code in codes.tolist()] == texts
        distinct = np.unique(codes)
        if len(distinct):
            ranks = numbers.ranks(distinct).tolist()
            by_rank = sorted(zip(ranks, distinct.tolist(), strict=True))
            in_order = [numbers.texts[number] for _, number in by_rank]
            assert in_order == sorted(set(texts))
        if len(uses) > 2:
            gone = uses.pop(0)
            left = {text for each in uses for text in each}
            known = {text: number for number, text in numbers.texts.items()}
            dropped = numbers.drop(np.array([known[text] for text in gone], dtype=np.int64))
            assert dropped.tolist() == sorted(known[text] for text in {*gone} - left)
            assert set(numbers.texts.values()) == left
