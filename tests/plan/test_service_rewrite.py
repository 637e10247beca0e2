"""The plans of SERVICE clauses: their keys, their text, and the errors."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from rsp_engine.errors import BindingError, PlanError
from rsp_engine.evaluators.service.config import ServiceConfig
from rsp_engine.grammar import check
from rsp_engine.options import RankingOptions, ServiceOptions
from rsp_engine.plan.explain.text import explain, explain_json
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import QueryPlan, plan
from rsp_engine.plan.services import refuse_unused_services
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint
from rsp_engine.replica.sparql_client.request_text import batch_of, whole_text
from tests.evaluators.served_shapes import EX, OTHER, SERVICE, SHAPES

ENDPOINTS = dict.fromkeys((SERVICE, OTHER), lambda pattern: InProcessEndpoint(pattern, ox.Store()))
GENERAL = RankingOptions(operator="general")
W = "FROM NAMED WINDOW :w ON :s [RANGE 10s]"
JOINED = f"SELECT * {W} WHERE {{ WINDOW :w {{ ?u :m ?n }} SERVICE :svc {{ ?u :f ?f }} }}"


def planned(text: str, **options: object) -> QueryPlan:
    text = f"PREFIX : <{EX}> {text}"
    merged = QueryOptions(**{"endpoints": ENDPOINTS, "ranking": GENERAL, **options})  # type: ignore[arg-type]
    return plan(check(text), text, "<query>", merged)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_keys_of_a_clause_are_the_variables_that_it_always_shares_with_its_context(shape):
    made = planned(shape.body)
    assert tuple(s.pattern.keys for s in made.physical.services) == shape.keys


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_no_text_for_oxigraph_has_a_service(shape):
    operator = planned(shape.body).physical.operator
    assert isinstance(operator, ServiceConfig)
    texts = [operator.query.sparql, *(c.keys.sparql for c in operator.clauses if c.keys)]
    assert not any("SERVICE" in text.upper().replace("SERVICE:", "") for text in texts)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_requests_of_a_clause_are_valid_sparql(shape):
    for service in planned(shape.body).physical.services:
        pattern = service.pattern
        ox.Store().query(whole_text(pattern))
        ox.Store().query(batch_of(pattern, [tuple(ox.NamedNode(EX) for _ in pattern.keys)]).text)


def test_select_star_shows_the_variables_of_the_query_and_no_others():
    body = "?u :f ?f OPTIONAL { ?u :g ?rsp_row }"
    made = planned(f"SELECT * {W} WHERE {{ WINDOW :w {{ ?u :m ?n }} SERVICE :svc {{ {body} }} }}")
    assert made.physical.operator.query.variables == ("f", "n", "rsp_row", "u")


def test_a_variable_may_have_any_name():
    made = planned(
        f"SELECT * {W} WHERE {{ WINDOW :w {{ ?é :m ?n }} SERVICE :svc {{ ?é :f ?_1· }} }}"
    )
    assert "variable:%C3%A9" in made.physical.operator.query.sparql


def test_filters_on_the_stream_and_on_static_data_reduce_the_keys():
    where = "WINDOW :w { ?u :m ?n } SERVICE :svc { ?u :f ?f } FILTER (?n > 1) FILTER (?f > 1)"
    made = planned(f"SELECT * {W} WHERE {{ {where} FILTER NOT EXISTS {{ ?u a :Known }} }}")
    assert isinstance(made.physical.operator, ServiceConfig)
    [clause] = made.physical.operator.clauses
    assert clause.keys is not None
    assert "?n > 1" in clause.keys.sparql
    assert "NOT EXISTS" in clause.keys.sparql
    assert "?f" not in clause.keys.sparql


@pytest.mark.parametrize("call", ["RAND() > 0.5", "STRLEN(STRUUID()) > 1"])
def test_random_functions_do_not_restrict_the_keys(call):
    made = planned(JOINED.replace("?n }", f"?n FILTER ({call}) }} WINDOW :w {{ ?u :k ?l }}"))
    assert isinstance(made.physical.operator, ServiceConfig)
    [clause] = made.physical.operator.clauses
    assert clause.keys is not None
    assert "builtin" not in clause.keys.sparql
    assert ":k ?l" in clause.keys.sparql


def test_a_service_without_a_binding_is_refused_with_a_way_out():
    with pytest.raises(PlanError) as refused:
        planned(JOINED, endpoints={})
    assert refused.value.message == "SERVICE needs a service binding"
    assert refused.value.hint == f"give its URL: --service {SERVICE}=URL"
    with pytest.raises(PlanError, match="needs a service binding") as refused:
        planned(JOINED.replace(":svc", "?x"), endpoints={})
    assert "every bound service" in str(refused.value)


def test_a_service_inside_of_another_is_not_for_this_engine_to_bind():
    inner = "SERVICE :svc { SERVICE :elsewhere { ?u :f ?f } }"
    made = planned(f"SELECT * {W} WHERE {{ WINDOW :w {{ ?u :m ?n }} {inner} }}")
    [service] = made.physical.services
    assert f"SERVICE <{EX}elsewhere>" in service.pattern.body
    assert "elsewhere" not in made.physical.operator.query.sparql


def test_functions_of_the_engine_are_not_known_to_a_service_but_others_may_be():
    functions = {"F": abs, f"{EX}g": abs}
    with pytest.raises(PlanError, match="F is a function of this engine"):
        planned(JOINED.replace("?f }", "?f FILTER (F(?f)) }"), functions=functions)
    made = planned(JOINED.replace("?f }", "?f FILTER (:theirs(?f)) }"))
    assert "theirs" in made.physical.services[0].pattern.body


def test_a_policy_that_looks_at_a_list_cannot_serve_a_general_query():
    with pytest.raises(BindingError) as refused:
        planned(JOINED, services=ServiceOptions(policy="AT-TSM"))
    assert "AT-TSM" in refused.value.message
    assert refused.value.hint is not None
    assert "WST, WSJ-RND, WSJ-LRU, WSJ-WBM, EXACT" in refused.value.hint


def test_a_policy_that_does_not_exist_is_refused_whatever_the_query():
    with pytest.raises(BindingError, match="no policy WSJ-BEST") as refused:
        planned(JOINED.partition("SERVICE")[0] + "}", services=ServiceOptions(policy="WSJ-BEST"))
    assert "WSJ-WBM" in str(refused.value)


def test_a_service_that_no_query_asks_is_refused():
    made = planned(JOINED)
    refuse_unused_services([SERVICE], made.physical.services)
    with pytest.raises(BindingError, match=f"no query calls service <{OTHER}>"):
        refuse_unused_services([SERVICE, OTHER], made.physical.services)


def test_text_and_json_explain_a_clause():
    options = ServiceOptions(
        policy="WSJ-LRU", budget=7, replica="cache", capacity=50, max_requests=2, deadline=300
    )
    made = planned(JOINED, services=options, feeds=frozenset({SERVICE}))
    text = explain(made)
    for line in (
        f"service  <{SERVICE}>, joined on ?u; returns ?f",
        "policy   WSJ-LRU: keys of the window, least recently fetched first",
        "budget   at most 7 keys per evaluation, 2 requests, 300 ms",
        "replica  filled on demand; at most 50 keys are kept",
        "changes  are pushed",
        "(0 <urn:key:0>)",
        "SERVICE is answered from a replica",
    ):
        assert line in text
    [data] = explain_json(made)["physical"]["services"]
    assert data["service"] == SERVICE
    assert data["join_key"] == ["u"]
    assert data["variables"] == ["f"]
    assert (data["policy"], data["budget"], data["deadline_ms"]) == ("WSJ-LRU", 7, 300)
    assert "VALUES (?place ?u)" in data["request"]
    assert "DISTINCT ?u" in data["keys"]


def test_a_clause_without_keys_is_explained_as_fetched_as_a_whole():
    where = "WINDOW :w { ?u :m ?n } SERVICE :svc { ?v :f ?f }"
    text = explain(
        planned(f"SELECT * {W} WHERE {{ {where} }}", services=ServiceOptions(policy="EXACT"))
    )
    assert "fetched as a whole" in text
    assert "none: all keys of the window are fetched" in text
    assert "VALUES" not in text


@pytest.mark.parametrize("grouped", ["", "GROUP BY ?u ?f"])
def test_a_ranking_of_a_count_window_with_service_takes_the_general_path(grouped):
    window = W.replace("RANGE 10s", "ELEMENTS 10")
    score = "COUNT(*) + ?f" if grouped else "?n + ?f"
    where = "WINDOW :w { ?u :m ?n } SERVICE :svc { ?u :f ?f }"
    text = f"SELECT ?u ({score} AS ?x) {window} WHERE {{ {where} }} {grouped}"
    made = planned(f"{text} ORDER BY DESC(?x) LIMIT 3", ranking=RankingOptions())
    assert "remote values age with time, but the window counts elements" in made.physical.why
