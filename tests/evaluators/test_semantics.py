"""What the words mean, case by case: every file of `tests/cases/semantics` is a test.

A case says what was decided, draws the windows, and holds the answer to the letter;
`rsp_engine.testing.case_file` says how it is written.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rsp_engine.cli.test import run_case
from rsp_engine.testing.case_file import differences, load_case, split
from rsp_engine.testing.difference import difference
from tests.data import PROJECT
from tests.thoroughness import IS_FAST

if TYPE_CHECKING:
    from pathlib import Path

CASES = sorted((PROJECT / "tests" / "cases" / "semantics").glob("*.case"))


def name_of(path: Path) -> str:
    return path.stem


def decision(path: Path) -> int:
    """Return the number of what a case decides: 2 of `4.2  Windows are open on the left.`"""
    return int(load_case(path).title.removeprefix("4.").split()[0])


def check(path: Path, folder: Path) -> None:
    """Run a case within a folder; fail with all differences, line by line."""
    case = load_case(path)
    if text := differences(case, run_case(case, folder)):
        pytest.fail(text, pytrace=False)


@pytest.mark.parametrize("path", CASES, ids=name_of)
def test_the_answer_is_the_one_that_was_worked_out_by_hand(path, tmp_path):
    check(path, tmp_path)


@pytest.mark.parametrize("path", CASES[::5] if IS_FAST else CASES, ids=name_of)
def test_the_answer_does_not_depend_on_how_a_stream_is_cut_into_files(path, tmp_path):
    case = load_case(path)
    dealt = {parts: split(case, parts) for parts in (2, 3)}
    if dealt[2].streams == case.streams:
        pytest.skip("its order of reading matters, or it has no stream")
    (tmp_path / "whole").mkdir()
    whole = run_case(case, tmp_path / "whole")
    for parts, cut_case in dealt.items():
        (tmp_path / f"{parts} parts").mkdir()
        cut = run_case(cut_case, tmp_path / f"{parts} parts")
        assert whole.answers == cut.answers, difference("answers", whole.answers, cut.answers)


def test_there_are_cases_for_every_decision_about_time_windows_and_rows():
    assert len(CASES) >= 40
    decisions = Counter(decision(path) for path in CASES)
    assert [number for number in range(1, 11) if decisions[number] < 3] == []


def test_a_case_is_named_after_its_decision():
    assert [path.name for path in CASES if int(path.name[:2]) != decision(path)] == []
