"""The exact output of `rsp explain`, and the exact errors of queries that the planner refuses.

`tests/cases/plans/explain` has the explanations of some queries of `queries/`, as text and as JSON.
`tests/cases/plans/refusals` has queries that the planner refuses (`NAME.rspql`) and their messages
(`NAME.txt`). To update the files, set RSP_UPDATE_CASES=1, and review the difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rsp_engine.engine import Engine
from rsp_engine.errors import BindingError, PlanError, QueryError
from rsp_engine.grammar import check
from rsp_engine.options import WindowOptions
from rsp_engine.plan.explain.text import explain, explain_json
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import QueryPlan, plan
from tests.data import PROJECT

CASES = PROJECT / "tests" / "cases" / "plans"
REFUSALS = sorted((CASES / "refusals").glob("*.rspql"))
EXPLAINED = (
    "alerts-construct",
    "biggest-trades",
    "hot-observations",
    "traffic-ask",
    "unhealthy-air",
    "warmest-rooms",
    "window-sizes",
)
EX = "http://example.org/"
PLACES = "http://example.org/air/places"


def compare(path: Path, text: str) -> None:
    if os.environ.get("RSP_UPDATE_CASES") == "1":
        path.write_text(text, encoding="utf-8", newline="\n")
    assert text == path.read_text(encoding="utf-8")


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """Plan a query of `queries/` in a folder that has a file of places."""
    monkeypatch.chdir(tmp_path)
    Path("places.ttl").touch()

    def read(name: str) -> QueryPlan:
        text = (PROJECT / "queries" / f"{name}.rspql").read_text(encoding="utf-8")
        return plan(check(text), text, name, QueryOptions(graphs={PLACES: Path("places.ttl")}))

    return read


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_plan_is_explained_as_text(name, planned):
    compare(CASES / "explain" / f"{name}.txt", explain(planned(name)))


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_plan_is_explained_as_json(name, planned):
    text = json.dumps(explain_json(planned(name)), ensure_ascii=False, indent=2) + "\n"
    compare(CASES / "explain" / f"{name}.json", text)


def test_text_and_json_explain_every_option():
    text = (PROJECT / "queries" / "biggest-trades.rspql").read_text(encoding="utf-8")
    windows = WindowOptions(bounds="[)", t0=250, report="every")
    made = plan(check(text), text, "q", QueryOptions(windows=windows))
    text = explain(made)
    assert "[open, close) from 250" in text
    assert "windows from the first to the last non-empty one" in text
    data = explain_json(made)["physical"]
    assert data["report"] == "every"
    assert data["bounds"] == "[)"


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.stem)
def test_what_cannot_be_run_is_refused_with_its_place_and_a_way_out(case, monkeypatch):
    monkeypatch.chdir(case.parent)
    text = case.read_text(encoding="utf-8")
    with pytest.raises(QueryError) as refused:
        plan(check(text, case.name), text, case.name)
    compare(case.with_suffix(".txt"), f"{refused.value}\n")


def test_every_expected_text_belongs_to_a_case():
    texts = {path.stem for path in (CASES / "refusals").glob("*.txt")}
    assert texts == {case.stem for case in REFUSALS}
    explained = {path.stem for path in (CASES / "explain").iterdir()}
    assert explained == set(EXPLAINED)


def test_a_service_without_a_binding_is_refused_by_that_name():
    path = PROJECT / "queries" / "influencers-expression.rspql"
    text = path.read_text(encoding="utf-8")
    with pytest.raises(PlanError, match="needs a service binding"):
        plan(check(text), text, path.name)


def test_all_reasons_for_a_refusal_are_reported_at_once():
    text = """PREFIX : <http://example.org/>
    SELECT (F(?x) AS ?y) FROM <missing.ttl> FROM NAMED WINDOW :w ON :s [RANGE 1s]
    WHERE { WINDOW :w { ?x :p ?z } SERVICE :remote { ?x :q ?z } FILTER (:g(?z)) }"""
    with pytest.raises(PlanError) as refused:
        plan(check(text), text, "q")
    assert len(refused.value.diagnostics) == 4


def joined(score, policy="AT-TSM", **options):
    """Return an engine with a window that is joined with a service, and ranked by a score."""
    grouped = "GROUP BY ?user ?followers" if "COUNT" in score else ""
    engine = Engine(policy=policy, budget=4, **options)
    engine.service(f"{EX}users", "http://localhost:7878/query")
    engine.function("F", lambda n, followers: n - followers, monotone=("falls",))
    engine.register(
        f"""PREFIX : <{EX}> SELECT ?user ({score} AS ?score)
        FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 5s]
        WHERE {{ WINDOW :w {{ ?user :n ?n }} SERVICE :users {{ ?user :f ?followers }} }}
        {grouped} ORDER BY DESC(?score) LIMIT 3"""
    )
    return engine


@pytest.mark.parametrize(
    ("score", "options", "words"),
    [
        ("?n + ?followers", {}, "Topk+N, the best 3, and the next 10"),
        ("?n + ?followers", {"policy": "WST"}, "the best 3; WST considers all objects"),
        ("COUNT(?n) + ?followers", {}, "the best 3; and the next 10, for each active window"),
        ("COUNT(?n) + ?followers", {"policy": "WST"}, "the best 3; WST considers all groups"),
        ("?n + ?followers", {"memory": "list"}, "is scored from the least value of its pane"),
        ("ABS(?n) + ?followers", {"memory": "list"}, "is left out, as its score may fall or rise"),
    ],
)
def test_the_ranking_of_a_join_is_explained(score, options, words):
    assert words in joined(score, **options).explain()


def test_directions_that_do_not_fit_a_function_are_refused():
    reason = "F declares 1 direction for 2 arguments"
    with pytest.raises(BindingError, match=f"directions of the score are wrong: {reason}"):
        joined("F(?n, ?followers)")
