"""Fields of a text, looked at eight bytes at a time, against a look at each character."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.io.sources.columns.words import Words
from tests.thoroughness import examples

short = st.text('ab"\\\x7f', max_size=20)
long = st.builds("{}{}{}".format, short, st.integers(230, 600).map("a".__mul__), short)


@examples(300)
@given(st.lists(short | long, min_size=1, max_size=5))
def test_a_field_contains_a_character_wherever_it_is(fields):
    starts, text = [], "before: "
    for field in fields:
        starts.append(len(text))
        text += f"{field}\x7f"
    ends = [start + len(field) for start, field in zip(starts, fields, strict=True)]
    found = Words(text.encode()).contain(np.array(starts), np.array(ends), b'"\\\x7f')
    assert found.tolist() == [bool({*field} & {*'"\\\x7f'}) for field in fields]
