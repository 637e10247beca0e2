"""Windows that are evaluated from pane files: by tasks, here or by turns, the answers are the same.

The tasks run in this process, each of them twice, and so do the writers of files: only the second
counts.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers import test_batches as batches
from tests.drivers.split_runs import Shared, in_splits
from tests.drivers.test_splits import check_splits, manners
from tests.evaluators.test_semantics import CASES, name_of
from tests.evaluators.test_semantics import check as check_case
from tests.thoroughness import TIMES, examples

WAYS = {
    "tasks": Shared("executors", buckets=1),
    "three buckets": Shared("executors", buckets=3),
    "many buckets": Shared("executors", buckets=16, cores=5),
    "the driver": Shared("driver"),
    "turns": Shared("turns", small_bytes=100),
}
USUAL = ["three buckets", "turns"]


@pytest.mark.parametrize("way", WAYS if TIMES > 1 else USUAL)
@pytest.mark.parametrize("path", CASES, ids=name_of)
def test_a_case_of_the_semantics_holds_for_shared_windows(path, way, tmp_path):
    with in_splits(shared=WAYS[way]):
        check_case(path, tmp_path)


@pytest.mark.parametrize("path", CASES, ids=name_of)
def test_a_case_of_shared_windows_can_be_cut_between_splits(path, tmp_path):
    with in_splits(shared=WAYS["turns"], cuts=range(1000)):
        check_case(path, tmp_path)


ways = st.builds(
    Shared,
    st.sampled_from(("driver", "executors", "turns")),
    st.sampled_from((1, 3, 16)),
    st.integers(1, 4),
    st.sampled_from((0, 300, 1 << 16)),
)


@examples(100)
@given(st.data(), batches.options, batches.texts(), st.integers(0, 12), st.tuples(manners, ways))
def test_sharing_windows_changes_nothing(data, chosen, lines, max_delay, both):
    how, shared = both
    number = data.draw(st.integers(1, 2))
    asked = [data.draw(batches.queries(index)) for index in range(number)]
    check_splits(asked, chosen, ["".join(lines)], max_delay, shared=shared, **how)
