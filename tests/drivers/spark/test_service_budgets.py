"""Budgets of services on Spark: the answers and the fetches of the local runner, and restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.drivers.test_budget_recovery import MOST, asked, most_in_a_span, run

if TYPE_CHECKING:
    from pathlib import Path


def test_no_span_has_more_keys_than_the_budget_wherever_a_run_on_spark_breaks_off(
    tmp_path: Path,
) -> None:
    """It takes some 30 seconds: Spark runs a job for each micro-batch of six pieces."""
    here, broken, crashed = (tmp_path / name for name in ("here", "broken", "crashed"))
    for folder in (here, broken, crashed):
        folder.mkdir()
    run(here, "AT-VOI", keeps=False)
    # What was answered after the last commit is answered again, and the size of a micro-batch, at
    # whose end a run commits, depends on what was measured before: each run may answer more.
    pieces = [run(broken, "AT-VOI", at_most=12, on_spark=True)]
    while pieces[-1] and len(pieces) < 20:
        pieces.append(run(broken, "AT-VOI", at_most=12 * len(pieces), on_spark=True))
    assert pieces[0] == 12
    assert pieces[-1] == 0
    assert (broken / "answers.jsonl").read_bytes() == (here / "answers.jsonl").read_bytes()
    assert asked(broken / "log.jsonl") == asked(here / "log.jsonl")
    run(crashed, "AT-VOI", crash_at=3, on_spark=True)
    assert len(asked(crashed / "log.jsonl")) == 3
    run(crashed, "AT-VOI", on_spark=True)
    assert len(asked(crashed / "log.jsonl")) > 3
    assert most_in_a_span(crashed / "log.jsonl") <= MOST
