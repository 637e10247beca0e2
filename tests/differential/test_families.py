"""Random cases, family by family: each run of the engine gives the answers of the evaluator.

RSP_SEED=17 pytest tests/differential -k order      reruns one case
RSP_THOROUGH=1 pytest tests/differential -k order   runs thousands of cases, new ones each time
"""

from __future__ import annotations

import logging
import os
from random import SystemRandom

import pytest

from tests.differential.checking import Failure, drawn, failures, smaller
from tests.differential.families import FAMILIES
from tests.thoroughness import TIMES

CASES = 15
THOROUGH_CASES = 2_400


def seeds() -> range:
    """Return the seeds of a run: one that is asked for, the usual ones, or new ones."""
    asked = os.environ.get("RSP_SEED")
    if asked is not None:
        return range(int(asked), int(asked) + 1)
    if TIMES == 1:
        return range(CASES)
    first = SystemRandom().randrange(10**9)
    return range(first, first + THOROUGH_CASES)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_run_gives_the_defined_answers(family, caplog):
    chosen = seeds()
    print(f"family {family}: seeds {chosen.start} to {chosen.stop - 1}")  # noqa: T201 - to rerun
    caplog.set_level(logging.ERROR, logger="rsp")
    cases = [drawn(family, seed) for seed in chosen]
    failed = {case.seed: found for case in cases if (found := list(failures(case)))}
    if failed:
        pytest.fail(report(family, failed, len(chosen)), pytrace=False)


def report(family: str, failed: dict[int, list[Failure]], count: int) -> str:
    """Return all seeds and runs that failed, and the first failure, reduced."""
    first = next(iter(failed.values()))[0]
    runs = (f"  {seed}: {', '.join(f.run for f in found)}" for seed, found in failed.items())
    return "\n".join(
        (
            f"{len(failed)} of {count} cases fail; of each the seed, and the operators that fail:",
            *runs,
            f"RSP_SEED={first.case.seed} pytest tests/differential -k {family}",
            "the first of them, reduced:",
            str(smaller(first)),
        )
    )
