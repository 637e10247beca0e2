"""The cache of row texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal

from rsp_engine.io.sinks.term_text import BindingsJson
from rsp_engine.model.answers import Row, Solutions


def rows(low: int, high: int, known: dict[int, Row]) -> tuple[Row, ...]:
    """Return the rows of a window; rows of the window before are the same objects."""
    return tuple(known.get(n) or Row({"n": Literal(n)}) for n in range(low, high))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=40))
def test_a_row_has_its_own_text_however_often_and_between_whatever_it_comes(windows):
    written, known = BindingsJson(), dict[int, Row]()
    for start, size in windows:
        found = rows(start, start + size, known)
        known = dict(zip(range(start, start + size), found, strict=True))
        expected = BindingsJson()(Solutions(("n",), rows(start, start + size, {})))
        assert written(Solutions(("n",), found)) == expected
        assert len(written._texts) <= 2 * size
        assert {id(row.bindings) for row in found} <= set(written._texts)


def test_a_row_that_comes_again_is_not_written_again():
    written, [row] = BindingsJson(), rows(0, 1, {})
    [first] = written(Solutions(("n",), (row,)))
    [again] = written(Solutions(("n",), (row,)))
    assert again is first
