"""Functions defined by an expression: a call is expanded to the expression."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine import Engine
from rsp_engine.drivers.bindings import connect
from rsp_engine.errors import BindingError, PlanError, QuerySyntaxError
from rsp_engine.grammar import check, serialise
from rsp_engine.grammar.definitions import USUAL, expand, read_definition
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from tests.cli.test_run import here, rsp
from tests.data import PROJECT
from tests.thoroughness import examples

__all__ = ["here"]

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"


def query(score: str) -> str:
    return (
        f"PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
        f"REGISTER RSTREAM :q AS SELECT ?x ({score} AS ?score) "
        "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s] WHERE { WINDOW :w { ?x :p ?y } } "
        "ORDER BY DESC(?score) LIMIT 2"
    )


def expanded(score: str, *definitions: str):
    added = {d.name: d for d in (read_definition(text, {"": EX}) for text in definitions)}
    result, errors = expand(check(query(score)), {**USUAL, **added})
    assert errors == []
    return result


leaves = st.sampled_from(["?x", "?y", "1", "0.5", '"a"', ":iri"])
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"({' '.join(p)})"),
        st.tuples(inner, inner).map(lambda p: f"IF({p[0]} > {p[1]} && BOUND(?x), {p[0]}, -{p[1]})"),
        inner.map(lambda e: f"xsd:double({e})"),
    ),
    max_leaves=6,
)


@examples(60)
@given(expressions, expressions, expressions)
def test_a_call_is_its_expression_with_the_arguments_in_the_places_of_the_parameters(body, x, y):
    body = body.replace("BOUND(?x)", "true")  # BOUND takes a variable, not any argument
    text = body.replace("?x", "?first").replace("?y", "?second")
    definition = f"F(?first, ?second) = {text.replace('xsd:', f'{EX}xsd#')}"
    definition = definition.replace(f"{EX}xsd#double", "<http://www.w3.org/2001/XMLSchema#double>")
    written = body.replace("?x", "\0").replace("?y", f"({y})").replace("\0", f"({x})")
    assert expanded(f"F({x}, {y}) + 1", definition) == check(query(f"({written}) + 1"))


def test_a_function_may_have_no_parameter():
    assert expanded("?y * F()", "F() = 2") == check(query("?y * 2"))


def test_functions_call_each_other_in_whatever_order_they_are_defined():
    found = expanded("F(?y)", "F(?a) = G(?a, 2) * 3", "G(?b, ?a) = ?b - ?a")
    assert found == check(query("(?y - 2) * 3"))


def test_a_function_may_be_called_by_an_iri_and_within_an_argument_of_itself():
    found = expanded(":f(:f(?y))", ":f(?a) = ?a + 1")
    assert found == check(query("(?y + 1) + 1"))
    assert expanded("F(?y)", "F(?v) = :g(?v) + 1", f"<{EX}g>(?u) = -?u") == check(query("-?y + 1"))


def test_norm_is_predefined_and_can_be_redefined():
    assert expanded("norm(?y, 5, 15)") == check(query("xsd:double(?y - 5) / (15 - 5)"))
    assert expanded("norm(?y)", "norm(?v) = ?v / 7") == check(query("?y / 7"))


def test_a_comment_ends_with_the_definition():
    assert expanded("F(?y)", "F(?v) = ?v # the value") == check(query("?y"))


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("", "this defines no function", 1),
        ("F(?a = 3", "this defines no function", 1),
        ("F 1(?a) = ?a", "expected `(`, found `1`", 3),
        ('"F"(?a) = ?a', "expected `)`, found `(`", 4),
        ("-F(?a) = ?a", "-F is not a name", 1),
        ("sum(?a) = 1", "sum is a function of SPARQL", 1),
        (f"<{XSD}double>(?a) = ?a", f"<{XSD}double> is a function of SPARQL", 1),
        ("F(?a, ?a) = 1", "?a is already a parameter", 6),
        ("F(a) = 1", "a is not a parameter", 3),
        ("F(?a,) = 1", "nothing is not a parameter", 6),
        ("F(?a) = ?b", "?b is not a parameter of F", 9),
        ("F(?a) = (?a +", "expected an expression, found `)`", 14),
        ("F(?a) = ?a) AS ?b) ((1", "this is more than one expression", 8),
        ("F(?a) = 1 + MAX(?a)", "an aggregate is not allowed in a definition", 13),
        ("F(?a) = EXISTS { }", "EXISTS is not allowed in a definition", 9),
        ("F(?a) = no:f(?a)", "prefix `no:` is not declared", 9),
    ],
)
def test_a_malformed_definition_is_refused_with_its_place(text, message, column):
    with pytest.raises(QuerySyntaxError) as caught:
        read_definition(text)
    assert str(caught.value).splitlines()[0] == f"<function>:1:{column}: error: {message}"


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("F(?a) = ?a", "F has 1 parameter, but 2 arguments are given"),
        ("F(?a, ?b) = F(?b, ?a)", "F is defined in terms of itself: F -> F"),
        ("F(?a, ?b) = ?a + :g(?b)", "the function <http://example.org/g> is not registered"),
    ],
)
def test_a_call_that_cannot_be_replaced_is_refused_at_its_place(definition, message):
    engine, text = Engine(), query("F(?x, ?y)")
    engine.define(definition, {"": EX})
    with pytest.raises(PlanError) as caught:
        engine.register(text)
    [error] = caught.value.diagnostics
    assert (error.message, text[error.span.start : error.span.end]) == (message, "F(?x, ?y)")


@pytest.mark.parametrize(
    "definitions",
    [
        ["F0(?a) = ?a", *(f"F{i + 1}(?a) = F{i}(?a) * F{i}(?a)" for i in range(40))],  # 2^40 parts
        ["F0(?a) = ?a", *(f"F{i + 1}(?a) = F{i}(?a) + 1" for i in range(400))],
    ],
)
def test_a_call_that_expands_to_too_much_is_refused(definitions):
    engine = Engine()
    for text in definitions:
        engine.define(text)
    with pytest.raises(PlanError, match="is too large or nested too deep"):
        engine.register(query(f"F{len(definitions) - 1}(?y)"))


def test_inside_of_service_a_call_is_sent_as_its_expression():
    text = (
        f"PREFIX : <{EX}> SELECT ?x ?v FROM NAMED WINDOW :w ON :s [RANGE 10s] "
        "WHERE { WINDOW :w { ?x :p ?y } SERVICE :r { ?x :q ?v FILTER (F(?v) > 3) } }"
    )
    engine = Engine()
    engine.service(f"{EX}r", "http://localhost:7878/query")
    engine.define("F(?a) = ?a * 2")
    engine.register(text)
    assert "FILTER (?v * 2 > 3)" in engine.explain()


def test_a_name_stands_for_one_function():
    engine = Engine()
    engine.function("F", lambda a: a)
    with pytest.raises(BindingError, match="F is registered already"):
        engine.define("F(?a) = ?a")
    engine.define("G(?a) = ?a")
    with pytest.raises(BindingError, match="G is defined twice"):
        engine.define("G(?a) = 2 * ?a")
    with pytest.raises(BindingError, match="G is defined already"):
        engine.function("G", lambda a: a)
    engine.function("norm", lambda a: a)  # a predefined function can be replaced
    assert "norm(?y)" in serialise(engine.register(query("norm(?y)")).query)


def test_listing_1_of_acquatop_ranks_by_a_function_that_is_proved_to_rise():
    text = (PROJECT / "queries" / "influencers.rspql").read_text()
    score = read_definition("F(?m, ?f) = 0.7 * norm(?m, 1, 50) + 0.3 * norm(?f, 0, 1000000)")
    endpoints = {f"{EX}BKG": connect("http://localhost:7878/query")}
    options = QueryOptions(endpoints=endpoints, definitions={**USUAL, "F": score})
    config = plan(check(text), text, "q", options).physical.operator
    assert type(config).__name__ == "AcquaTopConfig"


def test_a_definition_answers_as_the_expression_does(here):
    definition = "F(?t) = norm(?t, 10, 30) * ?t"
    text = (here / "hot.rspql").read_text().replace("LIMIT 1", "LIMIT 2")
    called = text.replace("?room ?t\n", "?room (F(?t) AS ?warmth)\n").replace(
        "(?t)\nL", "(?warmth)\nL"
    )
    (here / "called.rspql").write_text(called)
    (here / "written.rspql").write_text(
        called.replace(
            "F(?t)", "<http://www.w3.org/2001/XMLSchema#double>(?t - 10) / (30 - 10) * ?t"
        )
    )
    flags = ("--stream", ":readings=readings.jsonl", "--runner", "local")
    run = rsp("run", "called.rspql", *flags, "--function", definition)
    assert run.exit_code == 0, run.output
    scores = [row["score"] for line in run.stdout.splitlines() for row in json.loads(line)["rows"]]
    assert scores == [18.75, 10.0, 30.0]
    assert run.stdout == rsp("run", "written.rspql", *flags).stdout
    (here / "rsp.toml").write_text('[functions]\n"F(?t)" = "norm(?t, 10, 30) * ?t"\n')
    assert rsp("run", "called.rspql", *flags).stdout == run.stdout
    assert "MinTopk" in rsp("explain", "called.rspql").stdout
