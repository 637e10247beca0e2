"""The k-th best score among the instances that live as long, against a count by definition."""

from __future__ import annotations

import numpy as np
import pytest

from rsp_engine.operators.incomplete.dominance import kth_best_as_old


def by_definition(ends, keys, scores, k):
    found = []
    for end in ends:
        best: dict[int, float] = {}
        for key, score in zip(keys[ends >= end], scores[ends >= end], strict=True):
            best[key] = max(score, best.get(key, -np.inf))
        ranked = sorted(best.values(), reverse=True)
        found.append(ranked[k - 1] if len(ranked) >= k else -np.inf)
    return np.array(found)


@pytest.mark.parametrize("objects", [3, 30, 1000])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("panes", [1, 3, 40])
def test_the_kth_best_of_panes_of_any_size_is_that_of_the_definition(panes, k, objects):
    chance = np.random.default_rng(panes * k + objects)
    ends = np.sort(chance.integers(0, panes, 400))
    keys, scores = chance.integers(0, objects, 400), chance.integers(0, 90, 400) / 8
    expected = by_definition(ends, keys, scores, k)
    assert kth_best_as_old(ends, keys, scores, k, pane_by_pane=True).tolist() == expected.tolist()
    assert (kth_best_as_old(ends, keys, scores, k) <= expected).all()
