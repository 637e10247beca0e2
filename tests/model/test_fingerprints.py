"""Fingerprints of texts, compared with the texts themselves."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.terms.fingerprints import distinct, fingerprints, fingerprints_of
from tests.thoroughness import examples

texts = st.lists(
    st.text("ab0é", min_size=8, max_size=20)
    | st.builds(lambda text, times: text * times, st.text("ab", min_size=8), st.integers(60, 70)),
    max_size=8,
)


@examples(300)
@given(texts, texts)
def test_a_fingerprint_depends_on_the_text_alone(found, others):
    alone = [fingerprints_of([text]).item() for text in found]
    assert fingerprints_of([*others, *found])[len(others) :].tolist() == alone
    data = "\n".join(found).encode()
    ends = np.cumsum([len(text.encode()) + 1 for text in found], dtype=np.int64) - 1
    starts = ends - [len(text.encode()) for text in found]
    assert fingerprints(data, starts.astype(np.int64), ends).tolist() == alone
    assert len(set(alone)) == len(set(found))


def test_texts_that_differ_in_one_place_differ():
    digits = [
        f"<http://example.org/{a}> <http://example.org/{b}>"
        for a in range(999)
        for b in "0123456789>-"
    ]
    zeros = ["0" * size for size in range(8, 1500)]
    for found in (digits, zeros):
        assert len(distinct(fingerprints_of(found))) == len(found)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)))
def test_distinct_ones_are_in_order(found):
    assert distinct(np.array(found, dtype=np.int64)).tolist() == sorted(set(found))
