"""Blocks of rows: after any changes, a state contains the current rows."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.blocks import RowBlocks, TextBlocks, rows_of
from tests.thoroughness import examples

actions = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "state"]), st.integers(0, 600), st.integers(0, 3))
)


@examples(100)
@given(actions)
def test_a_state_contains_the_current_rows(drawn):
    blocks, rows = RowBlocks(), dict[int, int]()
    for action, number, value in drawn:
        if action == "put":
            rows[number] = value
            blocks.touch([number])
        elif action == "delete" and rows.pop(number, None) is not None:
            blocks.touch_one(number)
        elif action == "state":
            state = blocks.state(rows, lambda numbers: [[n, rows[n]] for n in numbers])
            assert rows_of(state, len(rows)) == [[n, rows[n]] for n in sorted(rows)]


@examples(100)
@given(st.lists(st.integers(0, 300), max_size=8))
def test_each_item_of_a_growing_list_is_encoded_once(steps):
    texts, items, written = TextBlocks(), list[int](), list[Any]()

    def write(item: int) -> str:
        written.append(item)
        return str(item)

    for step in steps:
        items.extend(range(len(items), len(items) + step))
        state = texts.state(items, write)
        assert rows_of(state["rows"], state["size"]) == [*map(str, items)]
    assert written == items
