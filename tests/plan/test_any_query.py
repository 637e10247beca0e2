"""Any query of the language is planned and explained, or refused with a place in its text."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from rsp_engine.errors import QueryError
from rsp_engine.evaluators.step import Step
from rsp_engine.grammar import check, serialise, tree
from rsp_engine.plan.explain.text import explain, explain_json
from rsp_engine.plan.planner import QueryPlan, plan
from tests.grammar.strategies import queries
from tests.thoroughness import examples

WINDOW = tree.Iri("http://example.org/w")
CLAUSE = tree.FromWindow(
    WINDOW, tree.Iri("http://example.org/s"), tree.TimeWindow(tree.Duration(9))
)


def over_one_window(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query in which every window and service is the same declared window."""

    def changed(node: tree.Node) -> tree.Node:
        match node:
            case tree.WindowPattern(_, group) | tree.ServicePattern(_, group):
                return tree.WindowPattern(WINDOW, group)
            case tree.GraphPattern(_, group):
                return group
            case tree.NamedCall(_, arguments) | tree.FunctionCall(_, arguments):
                return tree.BuiltInCall("COALESCE", arguments)
            case _:
                return node

    made = tree.rewrite_tree(query, changed)
    assert isinstance(made, tree.QueryUnit)
    return replace(made, register=None, form=replace(made.form, dataset=(CLAUSE,)))


def planned(query: tree.QueryUnit) -> None:
    text = serialise(query)
    try:
        made = plan(check(text, "query"), text, "query")
    except QueryError as error:
        places = [diagnostic.span for diagnostic in error.diagnostics]
    else:
        places = []
        explain_and_make(made)
    assert all(0 <= span.start <= span.end <= len(text) for span in places)


def explain_and_make(made: QueryPlan) -> None:
    assert explain(made)
    assert explain_json(made)
    Step(made.physical)


many = examples(60)


@many
@given(queries())
def test_any_query_is_planned_or_refused(query):
    planned(query)


@many
@given(queries().map(over_one_window))
def test_any_query_over_a_window_is_planned_or_refused(query):
    planned(query)
