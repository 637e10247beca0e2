"""The parts of joins on columns, each compared with what it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.terms.matched_triples import CodePairs, MatchedTriples
from rsp_engine.operators.joins import row_order
from rsp_engine.operators.joins.row_order import RowOrder
from rsp_engine.operators.windows.distinct_count import DistinctCount
from tests.thoroughness import examples

TEXTS = ["", "<urn:a>", "<urn:b>", '"a"', '"a"@en', '"a"^^<urn:t>', '"a\\t"', "_:b", "_:b1", '"é"']
rows = st.lists(st.tuples(*[st.integers(0, len(TEXTS) - 1)] * 3), min_size=1, max_size=20)


@pytest.mark.parametrize("most", [row_order._MOST, 1])
@examples(200)
@given(windows=st.lists(rows, min_size=1, max_size=4))
def test_rows_are_in_the_order_of_their_texts(most, windows):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(row_order, "_MOST", most)
        order = RowOrder(3)
        for found in windows:
            columns = [np.array(column, dtype=np.int64) for column in zip(*found, strict=True)]
            places = order.of(columns, TEXTS).tolist()
            written = ["\t".join(TEXTS[code] for code in row) for row in found]
            assert [written[place] for place in places] == sorted(written)


parts = st.dictionaries(st.integers(0, 5), st.sets(st.integers(0, 9)), max_size=5)


@examples(200)
@given(every=parts, chosen=st.lists(st.sets(st.integers(0, 5)), max_size=6))
def test_what_is_in_several_parts_counts_once(every, chosen):
    count = DistinctCount()
    for keys in chosen:
        found = {key: every[key] for key in keys if key in every}
        arrays = {key: np.array(sorted(part), dtype=np.int64) for key, part in found.items()}
        assert count.move(arrays) == len(set().union(*found.values()))


matched = st.lists(
    st.tuples(*[st.lists(st.tuples(st.sampled_from(TEXTS[1:]), st.sampled_from(TEXTS[1:])))] * 2),
    min_size=1,
    max_size=3,
)


@examples(200)
@given(matched, st.sets(st.integers(0, 9)))
def test_matched_triples_are_the_same_joined_compact_and_as_columns(found, prints):
    fingerprints = np.array(sorted(prints), dtype=np.int64)
    predicates = ("<urn:p>", "<urn:q>")
    triples = [
        MatchedTriples(
            predicates,
            tuple(
                CodePairs(*(np.array([TEXTS.index(p[n]) for p in pairs], np.int64) for n in (0, 1)))
                for pairs in part
            ),
            TEXTS,
            fingerprints,
        )
        for part in found
    ]
    whole = MatchedTriples.joined(triples).compact()
    assert set(whole.texts) == {
        text for part in found for pairs in part for p in pairs for text in p
    }
    lines = [
        f"{subject} {predicate} {value}"
        for number, predicate in enumerate(predicates)
        for part in found
        for subject, value in part[number]
    ]
    assert whole.lines() == lines
    assert len(whole) == len(lines)
    sent = MatchedTriples.of_columns(predicates, whole.texts, whole.columns(), whole.fingerprints)
    assert sent.lines() == lines
    assert sent.fingerprints.tolist() == sorted(prints)


def test_columns_that_do_not_fit_are_refused():
    for sizes, codes in (([1], [0]), ([2], [0, 0]), ([1], [0, 1]), ([1], [0, -1]), ([], [])):
        columns = np.array(sizes, dtype=np.int64), np.array(codes, dtype=np.int64)
        with pytest.raises(ValueError, match="no "):
            MatchedTriples.of_columns(("<urn:p>",), ["<urn:a>"], columns, np.arange(0))
