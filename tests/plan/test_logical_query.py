"""A query as recognisers read it has all that its syntax tree has, level by level."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given

from rsp_engine.grammar import parse, tree
from rsp_engine.grammar.scope import is_grouped, projected_variables
from rsp_engine.plan.logical.algebra import LogicalNode, find_nodes
from rsp_engine.plan.logical.query import GroupParts, logical_query
from rsp_engine.plan.logical.translate import translate_group
from rsp_engine.plan.variables import certain_variables, visible_variables
from tests.grammar.strategies import queries
from tests.thoroughness import examples

STATIC = "pattern over static data"


def kinds_of(group: tree.GroupPattern) -> list[str]:
    """Return the kinds of the elements of a group; adjacent triples are one pattern."""
    others = [e for e in group.elements if not isinstance(e, tree.FilterClause)]
    words = [STATIC if isinstance(e, tree.TriplesBlock) else e.keyword or "group" for e in others]
    runs = ((word, len(list(run))) for word, run in groupby(words))
    return [word for word, count in runs for _ in range(1 if word == STATIC else count)]


@examples(60)
@given(queries())
def test_a_group_is_taken_apart_to_its_elements(query):
    for group in tree.find(query, tree.GroupPattern):
        parts, filters = GroupParts.of(translate_group(group))
        assert [kind for kind, _ in parts] == kinds_of(group)
        written = [e.condition for e in group.elements if isinstance(e, tree.FilterClause)]
        assert list(filters) == written


@examples(60)
@given(queries())
def test_a_select_is_taken_apart_to_its_pattern_and_its_modifiers(query):
    form = query.form
    if isinstance(form, tree.DescribeForm):
        return
    select = logical_query(query).select
    assert (select is None) == (not isinstance(form, tree.SelectForm))
    if select is None or not isinstance(form, tree.SelectForm):
        return
    clause, modifiers = form.clause, form.modifiers
    assert select.where == translate_group(form.where)
    assert (select.grouping is not None) == is_grouped(clause, modifiers)
    assert select.keys == modifiers.group_by
    assert select.having == modifiers.having
    assert (None if select.values is None else select.values.data) == query.values
    assert select.order == modifiers.order_by
    assert select.computed == tuple(i for i in clause.items if isinstance(i, tree.SelectAs))
    assert select.project.variables == projected_variables(
        clause, form.where, modifiers, query.values
    )
    assert select.modifier == clause.modifier
    assert select.offset == (0 if modifiers.offset is None else modifiers.offset.value)
    assert select.limit == (None if modifiers.limit is None else modifiers.limit.value)


@examples(60)
@given(queries())
def test_the_variables_of_a_pattern_are_those_in_its_scope(query):
    for group in tree.find(query, tree.GroupPattern):
        everything = tree.SelectClause(())
        scope = set(projected_variables(everything, group, tree.Modifiers()))
        assert visible_variables(group) == visible_variables(translate_group(group)) == scope
        assert certain_variables(group) <= scope


def test_every_node_knows_its_place_in_the_text():
    text = (
        "PREFIX : <urn:> SELECT ?s (COUNT(*) AS ?n) { WINDOW :w { ?s :p ?v . FILTER (?v > 1) }"
        " OPTIONAL { ?s :q ?u } MINUS { ?s :r 1 } BIND (1 AS ?b) SERVICE :s { ?s ?p ?o }"
        " VALUES ?s { :a } GRAPH :g { ?s a :K } { ?s a :L } UNION { ?s a :M } }"
        " GROUP BY ?s HAVING (?n > 1) ORDER BY ?n LIMIT 3"
    )
    nodes = list(find_nodes(logical_query(parse(text)).plan, LogicalNode))
    assert len({type(node) for node in nodes}) == 16
    places = {type(node).__name__: text[node.span.start : node.span.end] for node in nodes}
    assert places["LeftJoin"] == "OPTIONAL { ?s :q ?u }"
    assert places["Service"] == "SERVICE :s { ?s ?p ?o }"
    assert places["Group"] == "?s"
    assert places["Slice"] == "LIMIT 3"
    assert all(places.values()), places
