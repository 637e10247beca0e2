"""What the words mean, case by case: every file of `tests/cases/semantics` is a test.

A case says what was decided, draws the windows, and holds the answer to the letter; `cases` tells
how it is written.
"""

from __future__ import annotations

import difflib
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.data import PROJECT
from tests.evaluators.cases import Outcome, load, run, split
from tests.thoroughness import IS_FAST

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CASES = sorted((PROJECT / "tests" / "cases" / "semantics").glob("*.case"))


def name_of(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", CASES, ids=name_of)
def test_the_answer_is_the_one_that_was_worked_out_by_hand(path, tmp_path):
    case = load(path)
    check(case.expected, run(case, tmp_path))


@pytest.mark.parametrize("path", CASES[::5] if IS_FAST else CASES, ids=name_of)
def test_the_answer_does_not_depend_on_how_a_stream_is_cut_into_files(path, tmp_path):
    case = load(path)
    dealt = {parts: split(case, parts) for parts in (2, 3)}
    if dealt[2].streams == case.streams:
        pytest.skip("its order of reading matters, or it has no stream")
    (tmp_path / "whole").mkdir()
    whole = run(case, tmp_path / "whole")
    for parts, cut_case in dealt.items():
        (tmp_path / f"{parts} parts").mkdir()
        cut = run(cut_case, tmp_path / f"{parts} parts")
        assert whole.answers == cut.answers, difference("answers", whole.answers, cut.answers)


def test_there_are_cases_for_every_decision_about_time_windows_and_rows():
    assert len(CASES) >= 40
    decisions = Counter(load(path).decision for path in CASES)
    assert [number for number in range(1, 11) if decisions[number] < 3] == []


def test_a_case_is_named_after_its_decision():
    assert [path.name for path in CASES if int(path.name[:2]) != load(path).decision] == []


def check(expected: Outcome, found: Outcome) -> None:
    """Fail with all differences, line by line."""
    texts = [
        difference("answers", expected.answers, found.answers),
        difference("dead letters", expected.dead_letters, found.dead_letters),
        difference("standard error", expected.error or (), found.error or ()),
        difference("exit code", [str(expected.exit_code)], [str(found.exit_code)]),
    ]
    if told := "\n".join(filter(None, texts)):
        pytest.fail(told, pytrace=False)


def difference(what: str, expected: Sequence[str], found: Sequence[str]) -> str:
    """Return what is missing (-) and what should not be there (+), nothing if all is well."""
    if list(expected) == list(found):
        return ""
    lines = difflib.ndiff(expected, found)
    return "\n".join([f"{what}: - expected, + found", *(line.rstrip("\n") for line in lines)])
