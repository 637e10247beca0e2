"""The notes of the SPARQL grammar: scopes, grouping, blank nodes."""

from __future__ import annotations

import pytest

from rsp_engine.errors import QuerySyntaxError
from rsp_engine.grammar import parse

GOOD = {
    "BIND of a variable that only a later pattern has": "SELECT * { BIND(1 AS ?x) ?s ?p ?x }",
    "BIND of a variable of MINUS": "SELECT * { MINUS { ?s ?p ?x } BIND(1 AS ?x) }",
    "BIND of a variable of FILTER EXISTS":
        "SELECT * { FILTER EXISTS { ?s ?p ?x } BIND(1 AS ?x) }",
    "BIND of a variable that a sub-query hides":
        "SELECT * { { SELECT ?s { ?s ?p ?x } } BIND(1 AS ?x) }",
    "AS uses an earlier AS": "SELECT (1 AS ?x) (?x + 1 AS ?y) {}",
    "AS after an aggregate uses it": "SELECT (SUM(?a) AS ?x) (?x + 1 AS ?y) { ?s ?p ?a }",
    "a group key is projected": "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s",
    "a named group key is projected": "SELECT ?k { ?s ?p ?o } GROUP BY (STR(?s) AS ?k)",
    "a variable inside an aggregate": "SELECT (SUM(?o + 1) AS ?n) { ?s ?p ?o }",
    "an aggregate in HAVING and ORDER BY":
        "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING(SUM(?o) > 1) ORDER BY AVG(?o)",
    "a blank node on both sides of a FILTER": "ASK { _:b ?p 1 . FILTER(?p != 2) _:b ?q 3 }",
    "a blank node of the template in the pattern": "CONSTRUCT { _:b ?p ?o } { _:b ?p ?o }",
    "the same variable twice": "SELECT ?s ?s { ?s ?p ?o }",
    "an aggregate of one's own": "SELECT (<f:f>(DISTINCT ?o) AS ?n) { ?s ?p ?o }",
}  # fmt: skip

BAD = {
    "BIND of a variable of WINDOW":
        "SELECT * FROM NAMED WINDOW <w:w> ON <s:s> [RANGE 1s] "
        "{ WINDOW <w:w> { ?s ?p ?x } BIND(1 AS ?x) }",
    "BIND of the variable that names a window": "SELECT * { WINDOW ?w { } BIND(1 AS ?w) }",
    "BIND of a variable of OPTIONAL": "SELECT * { OPTIONAL { ?s ?p ?x } BIND(1 AS ?x) }",
    "BIND of a variable of SERVICE": "SELECT * { SERVICE <e:e> { ?s ?p ?x } BIND(1 AS ?x) }",
    "BIND of a variable of VALUES": "SELECT * { VALUES ?x { 1 } BIND(1 AS ?x) }",
    "BIND of a variable that a sub-query projects":
        "SELECT * { { SELECT ?x { ?s ?p ?x } } BIND(1 AS ?x) }",
    "BIND inside EXISTS": "SELECT * { FILTER EXISTS { ?s ?p ?x BIND(1 AS ?x) } }",
    "AS of a variable of the pattern": "SELECT (1 AS ?x) { ?s ?p ?x }",
    "AS of a variable of the last VALUES": "SELECT (1 AS ?x) { } VALUES ?x { 1 }",
    "AS of a projected variable": "SELECT ?x (1 AS ?x) { }",
    "GROUP BY with AS of a variable of the pattern":
        "SELECT ?x { ?s ?p ?x } GROUP BY (1 AS ?x)",
    "an ungrouped variable in an expression":
        "SELECT (?o + 1 AS ?x) { ?s ?p ?o } GROUP BY ?s",
    "an ungrouped variable beside an aggregate": "SELECT ?s (SUM(?o) AS ?x) { ?s ?p ?o }",
    "an ungrouped variable with an aggregate in HAVING":
        "SELECT ?s { ?s ?p ?o } HAVING (COUNT(*) > 1)",
    "SELECT * with an aggregate in ORDER BY": "SELECT * { ?s ?p ?o } ORDER BY COUNT(?o)",
    "the key of a group is an expression, its variable is not":
        "SELECT ?s { ?s ?p ?o } GROUP BY STR(?s)",
    "an aggregate in FILTER": "SELECT * { ?s ?p ?o FILTER(SUM(?o) > 1) }",
    "an aggregate in BIND": "SELECT * { ?s ?p ?o BIND(SUM(?o) AS ?x) }",
    "an aggregate in GROUP BY": "SELECT (1 AS ?x) { ?s ?p ?o } GROUP BY (SUM(?o) AS ?k)",
    "an aggregate in an aggregate": "SELECT (SUM(COUNT(?o)) AS ?x) { ?s ?p ?o }",
    "a blank node across OPTIONAL": "ASK { _:b ?p 1 OPTIONAL { _:b ?q 2 } }",
    "a blank node after a group": "ASK { _:b ?p 1 . { ?s ?p ?o } _:b ?q 2 }",
    "a blank node after BIND": "ASK { _:b ?p 1 . BIND(1 AS ?x) _:b ?q 2 }",
    "a blank node in two windows": "ASK { WINDOW <w:v> { _:b ?p 1 } WINDOW <w:w> { _:b ?p 1 } }",
    "a path in a template": "CONSTRUCT { ?s <p:p>/<p:q> ?o } { ?s ?p ?o }",
    "a path in a short CONSTRUCT": "CONSTRUCT WHERE { ?s <p:p>* ?o }",
    "a sub-query that breaks the notes": "ASK { { SELECT * { ?s ?p ?o } GROUP BY ?s } }",
}  # fmt: skip


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_the_notes_allow(text):
    parse(text)


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_the_notes_forbid(text):
    with pytest.raises(QuerySyntaxError) as error:
        parse(text)
    assert len(error.value.diagnostics) == 1
