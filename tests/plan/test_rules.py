"""Rewrite rules: each has a case file, and none changes the solutions of a plan.

A case is a file in `tests/cases/plans` with the name of its rule: a query, its logical plan, and
the plan after the rules up to this one. To update the files, set RSP_UPDATE_CASES=1, and review the
difference.
"""

from __future__ import annotations

import os
from dataclasses import fields
from itertools import count
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.grammar import check, parse, tree
from rsp_engine.grammar.tree import BlankNode, DescribeForm
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.plan.explain.text import explain
from rsp_engine.plan.logical.algebra import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Logical,
    Minus,
    Project,
    Service,
    Union,
    Values,
    Window,
)
from rsp_engine.plan.logical.rules import RULES, apply_rules
from rsp_engine.plan.logical.translate import translate
from rsp_engine.plan.planner import QueryPlan, plan
from tests.data import PROJECT
from tests.grammar.strategies import queries as any_queries
from tests.plan.algebra import Windows, solutions
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CASES = PROJECT / "tests" / "cases" / "plans"
QUERIES = sorted((PROJECT / "queries").glob("*.rspql"))
BEFORE, AFTER = "\n--- before\n", "\n--- after\n"


def case_of(rule) -> Path:
    return CASES / f"{rule.__name__.replace('_', '-')}.txt"


def written(text: str, node: Logical) -> str:
    """Return a logical plan as `explain` shows it."""
    with patch.object(QueryPlan, "logical", node):
        shown = explain(plan(check(text), text, "<case>"))
    return shown.split("Logical plan\n")[1].split("\n\n")[0] + "\n"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_does_what_its_case_shows(rule):
    case = case_of(rule).read_text(encoding="utf-8")
    text = case.split(BEFORE)[0]
    place = RULES.index(rule)
    before = translate(check(text))
    after = apply_rules(before, RULES[: place + 1])
    now = text + BEFORE + written(text, before) + AFTER.lstrip("\n") + written(text, after)
    if os.environ.get("RSP_UPDATE_CASES") == "1":
        case_of(rule).write_text(now, encoding="utf-8", newline="\n")
        case = now
    assert now == case
    assert apply_rules(before, RULES[:place]) != after


def test_every_rule_has_a_case_and_every_case_a_rule():
    assert sorted(CASES.glob("*.txt")) == sorted(map(case_of, RULES))


@pytest.mark.parametrize(
    "pattern",
    [
        "_:r :p ?x . FILTER (?x > 1) _:r :q ?y",
        "OPTIONAL { ?z :z 1 } _:r :p ?x . FILTER (?x > 1) _:r :q ?y",
        "{ ?z :z 1 } UNION { ?z :z 2 } _:r :p ?x . FILTER (?x > 1) _:r :q ?y",
    ],
)
def test_triples_around_a_filter_are_one_pattern(pattern):
    """A blank node belongs to one basic graph pattern, which a filter does not end (5.1.1)."""
    after = apply_rules(
        translate(parse(f"PREFIX : <http://example.org/> SELECT * {{ {pattern} }}"))
    )
    labels = [
        {term.label for triple in node.triples for term in triple if isinstance(term, BlankNode)}
        for node in nodes(after)
        if isinstance(node, Bgp)
    ]
    assert labels.count({"r"}) == 1


X, Y, Z = map(tree.Var, "xyz")
IRIS = [tree.Iri(f"http://example.org/{name}") for name in "ab"]
NUMBERS = [tree.Literal(number, XSD + "integer") for number in "12"]
WINDOWS = ["http://example.org/v", "http://example.org/w"]
_labels = count()

variables = st.sampled_from([X, Y, Z])
conditions = st.lists(
    st.builds(lambda v: tree.BuiltInCall("BOUND", (v,)), variables)
    | st.builds(lambda v: tree.Unary("!", tree.BuiltInCall("BOUND", (v,))), variables)
    | st.builds(
        lambda v, w: tree.Comparison("<", v, w), variables, variables | st.just(NUMBERS[1])
    ),
    min_size=1,
    max_size=2,
).map(tuple)


@st.composite
def patterns(draw: st.DrawFn) -> Bgp:
    """Draw a basic graph pattern, often the empty one. No two patterns share a blank node."""
    node = tree.BlankNode(f".{next(_labels)}")
    terms: st.SearchStrategy[Any] = st.sampled_from([X, Y, node, IRIS[0]])
    values: st.SearchStrategy[Any] = st.sampled_from([Y, Z, node, IRIS[1], NUMBERS[0]])
    triples = st.lists(st.tuples(terms, st.just(IRIS[0]), values), max_size=2)
    return Bgp(tuple(draw(triples)))


def further(below: st.SearchStrategy[Logical]) -> st.SearchStrategy[Logical]:
    return (
        st.builds(Join, below, below)
        | st.builds(LeftJoin, below, below, st.just(()) | conditions)
        | st.builds(Union, below, below)
        | st.builds(Minus, below, below)
        | st.builds(Filter, conditions, below)
        | st.builds(lambda p: Extend(p, tree.Var("new"), X), below)
        | st.builds(Window, st.sampled_from([*map(tree.Iri, WINDOWS), tree.Var("g")]), below)
        | st.builds(Project, st.just(("x", "y")), below)
        | st.builds(Distinct, below)
    )


values = st.just(Values(tree.InlineData((X,), ((IRIS[0],), (None,)))))
plans = st.recursive(patterns() | values, further, max_leaves=5)
triples = st.tuples(st.sampled_from(IRIS), st.just(IRIS[0]), st.sampled_from([*IRIS, *NUMBERS]))
contents = st.fixed_dictionaries({name: st.frozensets(triples, max_size=3) for name in WINDOWS})


@pytest.mark.parametrize("rule", [*RULES, None], ids=lambda r: r.__name__ if r else "all rules")
@given(node=plans, windows=contents)
def test_a_rule_keeps_the_solutions_of_a_plan(rule, node: Logical, windows: Windows):
    """The oracle gives the same bag of solutions before and after."""
    over = Window(tree.Iri(WINDOWS[0]), node)
    after = apply_rules(over, RULES if rule is None else (rule,))
    assert solutions(after, windows) == solutions(over, windows)


@given(plans)
def test_rewriting_a_second_time_changes_nothing(node):
    once = apply_rules(node)
    assert apply_rules(once) == once


def nodes(node: Logical) -> Iterator[Logical]:
    yield node
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Logical):
            yield from nodes(value)


def facts(node: Logical) -> dict[str, list[Any]]:
    """Return what a plan reads and what it projects, in the order of the text."""
    found = list(nodes(node))
    return {
        "windows": [n.name for n in found if isinstance(n, Window)],
        "services": [(n.name, n.silent) for n in found if isinstance(n, Service)],
        "graphs": [n.name for n in found if isinstance(n, Graph)],
        "triples": [t for n in found if isinstance(n, Bgp) for t in n.triples],
        "variables": [n.variables for n in found if isinstance(n, Project)],
        "conditions": sorted(
            str(c) for n in found if isinstance(n, Filter | LeftJoin) for c in n.conditions
        ),
    }


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_rewriting_keeps_what_the_plan_of_a_query_reads_and_projects(path):
    before = translate(parse(path.read_text(encoding="utf-8")))
    after = apply_rules(before)
    assert facts(after) == facts(before)
    assert apply_rules(after) == after


@examples(60)
@given(any_queries())
def test_rewriting_keeps_what_the_plan_of_any_query_reads_and_projects(query):
    if isinstance(query.form, DescribeForm):
        return
    before = translate(query)
    after = apply_rules(before)
    assert facts(after) == facts(before)
    assert apply_rules(after) == after
    assert not any(isinstance(n, Join) and Bgp() in (n.left, n.right) for n in nodes(after))
