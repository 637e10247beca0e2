"""Golden cases: what `rsp validate` says about a query with a slip, to the letter.

A case is a pair of files in `tests/cases/errors` or `tests/cases/warnings`: `NAME.rspql` is the
query, `NAME.txt` is what goes to standard error. A new query file is a new case. When messages
change on purpose, write all expected texts anew, and read the difference before it is kept:

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
from rsp_engine.grammar.files import read_query
from rsp_engine.grammar.parser.error_hints import HINTS
from rsp_engine.grammar.parser.escapes import undo_codepoint_escapes
from rsp_engine.grammar.parser.failure import Failure
from rsp_engine.grammar.parser.tables import tables
from rsp_engine.grammar.rules import RULES
from tests.data import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

CASES = PROJECT / "tests" / "cases"
ERRORS = sorted((CASES / "errors").glob("*.rspql"))
WARNINGS = sorted((CASES / "warnings").glob("*.rspql"))


def name_of(case: Path) -> str:
    return case.stem


def check(case: Path, exit_code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validate the file of a case from within its folder, so that its bare name is shown."""
    monkeypatch.chdir(case.parent)
    result = CliRunner().invoke(app, ["validate", case.name])
    assert result.exit_code == exit_code, result.output
    expected = case.with_suffix(".txt")
    if os.environ.get("RSP_UPDATE_CASES") == "1":
        expected.write_text(result.stderr, encoding="utf-8", newline="\n")
    assert result.stderr == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", ERRORS, ids=name_of)
def test_an_error_is_told_with_its_place_and_a_way_out(case, monkeypatch):
    check(case, 2, monkeypatch)


@pytest.mark.parametrize("case", WARNINGS, ids=name_of)
def test_a_warning_is_told_and_the_query_is_taken(case, monkeypatch):
    check(case, 0, monkeypatch)


def test_there_are_at_least_25_error_cases_and_every_text_belongs_to_a_query():
    assert len(ERRORS) >= 25
    queries = {case.with_suffix("") for case in (*ERRORS, *WARNINGS)}
    assert queries == {
        text.with_suffix("")
        for text in (*CASES.glob("errors/*.txt"), *CASES.glob("warnings/*.txt"))
    }


def test_every_slip_is_recognised_in_some_case():
    used = {slip_of(text) for text in texts(ERRORS)}
    assert [slip.__name__ for slip in HINTS if slip.__name__ not in used] == []


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
    """Return the texts of the cases whose file can be read as text at all."""
    found = []
    for case in cases:
        with suppress(QueryError):
            found.append(read_query(str(case)))
    return found


def is_readable(text: str) -> bool:
    return validate(text).query is not None


def slip_of(written: str) -> str | None:
    """Return the name of the slip that gives the hint where the parser stops, if there is one."""
    text, places, _ = undo_codepoint_escapes(written)
    try:
        tables().parse(text)
    except UnexpectedInput as error:
        failure = Failure.of(error, text, places, tables())
        return next((slip.__name__ for slip in HINTS if slip(failure) is not None), None)
    return None
