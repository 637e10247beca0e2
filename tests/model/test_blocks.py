"""Blocks of rows: whatever is touched, they say what is there."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.blocks import RowBlocks, TextBlocks, rows_of
from tests.thoroughness import examples

acts = st.lists(st.tuples(st.sampled_from("pds"), st.integers(0, 600), st.integers(0, 3)))


@examples(100)
@given(acts)
def test_blocks_hold_the_rows_that_are_there(drawn):
    blocks, held = RowBlocks(), dict[int, int]()
    for act, number, value in drawn:
        if act == "p":
            held[number] = value
            blocks.touch([number])
        elif act == "d" and held.pop(number, None) is not None:
            blocks.touch_one(number)
        state = blocks.state(held, lambda some: [[n, held[n]] for n in some]) if act == "s" else {}
        if act == "s":
            assert rows_of(state, len(held)) == [[n, held[n]] for n in sorted(held)]


@examples(100)
@given(st.lists(st.integers(0, 300), max_size=8))
def test_a_list_that_grows_is_written_once(steps):
    texts, items, written = TextBlocks(), list[int](), list[Any]()

    def write(item: int) -> str:
        written.append(item)
        return str(item)

    for step in steps:
        items.extend(range(len(items), len(items) + step))
        state = texts.state(items, write)
        assert rows_of(state["rows"], state["size"]) == [*map(str, items)]
    assert written == items
