"""Each shape with the queries that it takes, and those that it refuses: `tests/cases/shapes`.

A case is `SHAPE/NAME.case`. It says on top what it shows; sections follow:

    --- query        the text of a query
    --- options      `operator`, `match` or `max_instances`, each with a value on a line
    --- plan         the physical plan as `explain` shows it: the query has the shape
    --- why not      the reason with its place: the query does not have the shape

The service :remote is bound, and the function F is registered. To update the files, set
RSP_UPDATE_CASES=1, and review the difference.
"""

from __future__ import annotations

import ast
import json
import os
import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from rsp_engine import Engine
from rsp_engine.cli import app
from rsp_engine.errors import Diagnostic, PlanError, render
from rsp_engine.grammar import check
from rsp_engine.options import RankingOptions, ServiceOptions, WindowOptions
from rsp_engine.plan.explain.text import explain, explain_json
from rsp_engine.plan.logical.query import logical_query
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import SHAPES, plan
from rsp_engine.plan.shapes.shape import WhyNot
from rsp_engine.replica.changes import ChangeFeed
from rsp_engine.testing.case_file import named, sections_of
from tests.data import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER = PROJECT / "tests" / "cases" / "shapes"
CASES = sorted(FOLDER.glob("*/*.case"))
SHARED = ("pair_pattern", "ranking", "shape")
GRAPH = "http://example.org/g"
BOUND = QueryOptions(
    functions={"F": max},
    endpoints={"http://example.org/remote": ChangeFeed},
    graphs={GRAPH: PROJECT / "tests" / "plan" / "__init__.py"},
)


def options_of(sections: list[tuple[str, str]]) -> QueryOptions:
    words = [line.split() for _, text in named(sections, "options") for line in text.splitlines()]
    chosen: dict[str, Any] = {
        name: int(value) if value.isdigit() else value for name, value in words
    }
    kinds = {"windows": WindowOptions, "ranking": RankingOptions, "services": ServiceOptions}
    parts = {
        name: kind(
            **{each.name: chosen.pop(each.name) for each in fields(kind) if each.name in chosen}
        )
        for name, kind in kinds.items()
    }
    return replace(BOUND, **parts, **chosen)


def outcome(name: str, case: Path, text: str, options: QueryOptions) -> str:
    """Return what the shape of a case says about its query, as the last section of a case."""
    found = SHAPES[name].recognise(logical_query(check(text)), options)
    if isinstance(found, WhyNot):
        shown = render(Diagnostic("semantic", found.reason, found.span), text, name, "why not")
        return f"--- why not\n{shown}\n"
    made = plan(check(text), text, case.name, options)
    assert list(SHAPES)[len(made.refusals)] == name
    shown = explain(made).split("Physical plan\n")[1].replace(str(PROJECT), "PROJECT").rstrip()
    return f"--- plan\n{shown}\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.stem}")
def test_a_shape_takes_a_query_or_says_why_not(case):
    written = case.read_text(encoding="utf-8")
    sections = list(sections_of(written))
    [(_, text)] = named(sections, "query")
    now = outcome(case.parent.name, case, text, options_of(sections))
    kind = "\n--- plan\n" if now.startswith("--- plan") else "\n--- why not\n"
    assert kind in written, f"the case expects the other outcome than {now}"
    changed = written.split(kind)[0] + "\n" + now
    if os.environ.get("RSP_UPDATE_CASES") == "1":
        case.write_text(changed, encoding="utf-8", newline="\n")
        written = changed
    assert changed == written


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_has_queries_that_it_takes_and_that_it_refuses(name):
    assert SHAPES[name].name == name
    texts = [case.read_text(encoding="utf-8") for case in (FOLDER / name).glob("*.case")]
    assert sum("\n--- plan\n" in text for text in texts) >= 4
    assert sum("\n--- why not\n" in text for text in texts) >= 6


def test_every_folder_is_of_a_shape():
    assert {path.name for path in FOLDER.iterdir()} == set(SHAPES)


def reasons_in(module: str) -> Iterator[str]:
    """Yield the reasons that a module gives, as regular expressions."""
    path = PROJECT / "rsp_engine" / "plan" / "shapes" / f"{module}.py"
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        known: dict[str, ast.expr] = {}
        for node in sorted(ast.walk(function), key=lambda node: getattr(node, "lineno", 0)):
            match node:
                case ast.Assign([ast.Name(name)], value):
                    known[name] = value
                case ast.Raise(ast.Call(ast.Name("NoMatchError" | "NotAlikeError"), [reason, _])):
                    yield pattern_of(reason, known)


def pattern_of(text: ast.expr, known: dict[str, ast.expr]) -> str:
    match text:
        case ast.Constant(str(value)):
            return re.escape(value)
        case ast.JoinedStr(values):
            return "".join(pattern_of(value, known) for value in values)
        case ast.FormattedValue(ast.Name(name)) if name in known:
            return pattern_of(known[name], known)
        case ast.Name(name):
            return pattern_of(known[name], known)
        case _:
            return ".+"


def reasons_of(folder: str) -> set[str]:
    """Return the reasons that the cases of a shape, or of all, have."""
    texts = [case.read_text(encoding="utf-8") for case in FOLDER.glob(f"{folder}/*.case")]
    lines = (line for text in texts for line in text.split("\n--- why not\n")[1:])
    return {line.split(": why not: ")[1].split("\n")[0] for line in lines}


@pytest.mark.parametrize("module", [*SHAPES, *SHARED])
def test_every_reason_has_a_case(module):
    reasons = list(reasons_in(module))
    assert reasons
    shown = reasons_of("*" if module in SHARED else module)
    missing = [r for r in reasons if not any(re.fullmatch(r, each) for each in shown)]
    assert not [m for m in missing if re.sub(r"\\", "", m) not in SAID_OF_AN_OPERATOR]


HEAD = "PREFIX : <http://example.org/> "
WINDOW = "FROM NAMED WINDOW :w ON STREAM :s [RANGE 9s] WHERE { WINDOW :w { ?x :p ?v } }"
SAID_OF_AN_OPERATOR = {
    "only ORDER BY with LIMIT ranks": f"{HEAD} SELECT ?x {WINDOW}",
    "only a SELECT can rank": f"{HEAD} ASK {WINDOW}",
}


@pytest.mark.parametrize("reason", SAID_OF_AN_OPERATOR)
def test_an_operator_that_was_asked_for_says_why_it_cannot_run_a_query(reason):
    text = SAID_OF_AN_OPERATOR[reason]
    with pytest.raises(PlanError, match=f"mintopk cannot run this query: {reason}"):
        plan(check(text), text, "q", replace(BOUND, ranking=RankingOptions(operator="mintopk")))


def test_the_reasons_against_other_shapes_are_explained_on_request():
    text = f"{HEAD} SELECT ?x ?v\n{WINDOW} LIMIT 3"
    made = plan(check(text), text, "q")
    before, after = explain(made, why_not=True).split("\nWhy not\n")
    assert explain(made) == before
    lines = after.splitlines()
    assert [line.split()[0] for line in lines] == list(SHAPES)[:8]
    assert lines[4:] == [
        "  topk        only a SELECT with ORDER BY and LIMIT ranks (line 1, column 33)",
        "  per_pane    LIMIT and OFFSET cut the rows of the whole window (line 1, column 33)",
        "  column_join the window has no two triple patterns to join (line 2, column 54)",
        "  service     there is no SERVICE clause (line 1, column 33)",
    ]
    assert "why_not" not in explain_json(made)
    assert explain_json(made, why_not=True)["why_not"][7] == {
        "shape": "service",
        "reason": "there is no SERVICE clause",
        "line": 1,
        "column": 33,
    }


def test_the_command_and_the_engine_print_these_reasons(tmp_path):
    (tmp_path / "q.rspql").write_text(f"{HEAD} SELECT ?x {WINDOW}")
    asked = ["explain", str(tmp_path / "q.rspql")]
    engine = Engine()
    engine.register_file(asked[1])
    for flag, why_not in (([], False), (["--why-not"], True)):
        shown = CliRunner().invoke(app, [*asked, *flag]).output
        assert shown == engine.explain(why_not=why_not)
        assert ("several panes may give the same row: SELECT leaves out ?v" in shown) == why_not
        data = json.loads(CliRunner().invoke(app, [*asked, *flag, "--format", "json"]).output)
        assert ("why_not" in data) == why_not
