"""The Spark driver: local == Spark, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.runtime.cases import load, run
from tests.runtime.test_semantics import CASES
from tests.runtime.test_semantics import check as compare

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("spark")

EX = "http://example.org/"
HEAD = f"PREFIX : <{EX}> REGISTER RSTREAM :q AS "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 2s]"


def chosen() -> list[Path]:
    """Return one case in four: the others run in places, without Spark."""
    return CASES[::4]


@pytest.mark.parametrize("path", chosen(), ids=lambda path: path.stem)
def test_a_case_of_the_semantics_holds_on_spark(path, tmp_path, monkeypatch):
    monkeypatch.setenv("RSP_RUNNER", "spark")
    case = load(path)
    compare(case.expected, run(case, tmp_path))
