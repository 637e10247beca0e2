"""The indexes of SMA: what they hold, what a scan of them finds, and how many cells a grid has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.operators.topk.baselines.window_index import RingBuffer, ScoreGrid
from rsp_engine.operators.topk.contract import as_arrivals
from tests.thoroughness import examples

INDEXES = pytest.mark.parametrize("kind", [RingBuffer, ScoreGrid])


@INDEXES
@examples(40)
@given(st.randoms(), st.integers(1, 40), st.sampled_from([30, 1_000]))
def test_a_scan_finds_the_best_objects_that_are_alive(kind, random, count, keys):
    """A key has one score and may arrive again, which replaces it; panes expire one by one."""
    index, panes, position = kind(), [], 0
    scores = [random.choice([1, 1e6]) * random.randrange(50) for _ in range(keys)]
    for end in range(12):
        batch = []
        for _ in range(random.randrange(60)):
            position += 1
            batch.append((random.randrange(keys), position))
        panes.append((end, batch))
        columns = [key for key, _ in batch], [at for _, at in batch]
        index.add(end, as_arrivals(*columns, [scores[key] for key, _ in batch]))
        window = max(0, end - 4)
        index.purge(window)
        alive = [(key, at, last) for last, pane in panes if last >= window for key, at in pane]
        assert len(index) == len(alive)
        held, ends = index.objects()
        found = zip(held.keys.tolist(), held.positions.tolist(), ends.tolist(), strict=True)
        assert sorted(found) == sorted(alive)
        latest = {key: (scores[key], at, key, last) for key, at, last in alive}
        expected = sorted(latest.values(), reverse=True)[:count]
        best, until = index.best(count, window)
        assert best.keys.tolist() == [key for *_, key, _ in expected]
        assert until.tolist() == [last for *_, last in expected]


@pytest.mark.parametrize("spread", [1e-3, 1e6], ids=["close together", "far apart"])
def test_a_scan_makes_cells_of_another_width_where_there_are_far_too_many_or_too_few(spread):
    """Of 1,024 cells that are wanted, there may be a quarter, or four times as many."""
    grid = ScoreGrid()
    numbers = np.arange(10_000)
    grid.add(0, as_arrivals(numbers, numbers, numbers * spread / 10_000))
    assert not 256 <= len(grid._order) <= 4_096
    best, _ = grid.best(3, 0)
    assert best.keys.tolist() == [9_999, 9_998, 9_997]
    assert 1_000 <= len(grid._order) <= 1_100
