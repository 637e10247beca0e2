"""Golden cases: the exact output of `rsp validate` for queries with mistakes.

A case is a pair of files in `tests/cases/errors/KIND` or `tests/cases/warnings`: `NAME.rspql` is
the query, `NAME.txt` is the expected standard error. The sub-folders of `errors` sort the cases by
what is wrong: `aggregates`, `clauses`, `names`, `windows` and so on. A new query file is a new
case. When messages change on purpose, regenerate the expected texts and review the difference:

    RSP_UPDATE_CASES=1 pytest tests/grammar/test_error_cases.py
    git diff tests/cases
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from lark.exceptions import UnexpectedInput
from typer.testing import CliRunner

from rsp_engine.cli import app
from rsp_engine.errors import QueryError
from rsp_engine.grammar import parse, validate
from rsp_engine.grammar.parser import tables
from rsp_engine.grammar.parser.error_hints import HINTS
from rsp_engine.grammar.parser.escapes import undo_codepoint_escapes
from rsp_engine.grammar.parser.failure import Failure
from rsp_engine.grammar.rules import RULES
from rsp_engine.grammar.validate import read_query
from tests.data import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

CASES = PROJECT / "tests" / "cases"
ERRORS = sorted((CASES / "errors").rglob("*.rspql"))
WARNINGS = sorted((CASES / "warnings").rglob("*.rspql"))


def case_id(case: Path) -> str:
    """Return the path of a case below its folder: `windows/zero-step`, `limit-zero`."""
    return case.relative_to(CASES).with_suffix("").as_posix().partition("/")[2]


def check(case: Path, exit_code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validate the file of a case from its own folder, so that messages show its bare name."""
    monkeypatch.chdir(case.parent)
    result = CliRunner().invoke(app, ["validate", case.name])
    assert result.exit_code == exit_code, result.output
    expected = case.with_suffix(".txt")
    if os.environ.get("RSP_UPDATE_CASES") == "1":
        expected.write_text(result.stderr, encoding="utf-8", newline="\n")
    assert result.stderr == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", ERRORS, ids=case_id)
def test_an_error_is_reported_with_its_place_and_a_hint(case, monkeypatch):
    check(case, 2, monkeypatch)


@pytest.mark.parametrize("case", WARNINGS, ids=case_id)
def test_a_warning_is_reported_and_the_query_is_accepted(case, monkeypatch):
    check(case, 0, monkeypatch)


def test_there_are_at_least_25_error_cases_and_every_text_belongs_to_a_query():
    assert len(ERRORS) >= 25
    queries = {case.with_suffix("") for case in (*ERRORS, *WARNINGS)}
    assert queries == {
        text.with_suffix("")
        for text in (*CASES.glob("errors/**/*.txt"), *CASES.glob("warnings/**/*.txt"))
    }


def test_every_error_case_is_sorted_by_kind_and_has_a_name_of_its_own():
    assert [case.name for case in ERRORS if case.parent.parent != CASES / "errors"] == []
    assert len({case.stem for case in ERRORS}) == len(ERRORS)


def test_every_hint_is_given_in_some_case():
    used = {hint_of(text) for text in texts(ERRORS)}
    assert [hint.__name__ for hint in HINTS if hint.__name__ not in used] == []


def test_every_rule_is_broken_in_some_case():
    queries = [parse(text) for text in texts((*ERRORS, *WARNINGS)) if is_readable(text)]
    unbroken = [rule.__name__ for rule in RULES if not any(any(rule(q)) for q in queries)]
    assert unbroken == []


def test_what_is_nested_too_deep_is_refused_at_its_place():
    text = f"ASK {{\n{'{ ' * 300}?s ?p ?o{' }' * 300}\n}}"
    [wrong] = validate(text).errors
    assert wrong.message == "this is nested too deep"
    assert wrong.hint == "flatten the pattern, or split the query"
    assert text[wrong.span.start] == "{"


def texts(cases: tuple[Path, ...] | list[Path]) -> list[str]:
    """Return the texts of the cases; skip the files that are not UTF-8."""
    readable = []
    for case in cases:
        with suppress(QueryError):
            readable.append(read_query(str(case)))
    return readable


def is_readable(text: str) -> bool:
    return validate(text).query is not None


def hint_of(written: str) -> str | None:
    """Return the name of the first hint that applies where the parser stops, if there is one."""
    text, places, _ = undo_codepoint_escapes(written)
    try:
        tables().parse(text)
    except UnexpectedInput as error:
        failure = Failure.of(error, text, places, tables())
        return next((hint.__name__ for hint in HINTS if hint(failure) is not None), None)
    return None
