"""Queries with SERVICE of many shapes, and an oracle that joins the remote data naively.

The oracle puts the remote data into a named graph, and reads GRAPH for SERVICE and for WINDOW.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Template

import pyoxigraph as ox

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
SERVICE = f"{EX}svc"
OTHER = f"{EX}other"
W = "FROM NAMED WINDOW :w ON :s [RANGE 20s STEP 10s]"


_SHORT = {
    "m": "WINDOW :w { ?u :mentions ?n }",
    "f": "SERVICE :svc { ?u :followers ?f }",
    "n": "SERVICE :svc { ?u :name ?m }",
    "g": "SERVICE :svc { ?u :followers ?f OPTIONAL { ?u :name ?m } }",
    "k": "SERVICE :svc { ?u :knows ?k }",
    "o": "SERVICE :other { ?k :name ?m }",
}


@dataclass(frozen=True)
class Shape:
    """A query, with `$` before what is short for a clause.

    `joins` are the keys of its clauses, in order; () is a clause that is fetched as a whole.
    """

    name: str
    where: str
    joins: str
    select: str = "SELECT *"
    tail: str = ""
    is_always_exact: bool = True
    arrivals: str | None = None

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """The keys of each clause."""
        return tuple(() if j == "()" else tuple(j.split()) for j in self.joins.split("; "))

    @property
    def body(self) -> str:
        """The query without its prefix."""
        text = f"{self.select} {W} WHERE {{ {self.where} }} {self.tail}"
        return Template(text).substitute(_SHORT)

    @property
    def text(self) -> str:
        """The query."""
        return PREFIX + self.body

    @property
    def naive(self) -> str:
        """The query over named graphs."""
        text = self.text.replace(W, "")
        text = re.sub(r"SERVICE( SILENT)? \?x", "VALUES ?x { :svc :other } GRAPH ?x", text)
        return re.sub(r"SERVICE( SILENT)?|WINDOW", "GRAPH", text)


SHAPES = [
    Shape("one to many", "$m $f", "u"),
    Shape("service first", "$f $m", "u"),
    Shape("silent", "$m SERVICE SILENT :svc { ?u :followers ?f }", "u"),
    Shape("optional around", "$m OPTIONAL { $f }", "u"),
    Shape("optional around, with a condition", "$m OPTIONAL { $f FILTER (?f > ?n) }", "u"),
    Shape("optional inside", "$m $g", "u"),
    Shape("only optional inside", "$m SERVICE :svc { OPTIONAL { ?u :name ?m } }", "()"),
    Shape("filter inside", "$m SERVICE :svc { ?u :followers ?f FILTER (?f > 2) }", "u"),
    Shape("filter on remote values", "$m $f FILTER (?f > ?n)", "u"),
    Shape("filter on the stream", "$m $f FILTER (?n > 1)", "u"),
    Shape("several triples", "$m SERVICE :svc { ?u :followers ?f ; :name ?m . ?u :knows ?k }", "u"),
    Shape("composite key", "WINDOW :w { ?u :mentions ?n ; :likes ?k } $k", "u k"),
    Shape("object as key", "WINDOW :w { ?x :mentions ?f } $f", "f"),
    Shape("no shared variable", "$m SERVICE :svc { ?v :followers ?f }", "()"),
    Shape("no variable at all", "$m SERVICE :svc { :a :followers 1 }", "()"),
    Shape("inside a union", "{ $m $f } UNION { WINDOW :w { ?u :likes ?n } }", "u"),
    Shape("in both sides of a union", "$m { $f } UNION { SERVICE :svc { ?u :name ?f } }", "u; u"),
    Shape("keys of a union", "{ $m } UNION { WINDOW :w { ?u :likes ?l } } $f", "u"),
    Shape("in a sub-query", "$m { SELECT ?u ?f WHERE { $f } }", "u"),
    Shape(
        "in a sub-query that is cut",
        "$m { SELECT ?u ?f WHERE { $f } ORDER BY ?f ?u LIMIT 2 }",
        "()",
    ),
    Shape("in a sub-query that hides its key", "$m { SELECT ?f WHERE { $f } }", "()"),
    Shape(
        "in a sub-query that groups",
        "$m { SELECT ?u (SUM(?f) AS ?g) WHERE { $f } GROUP BY ?u }",
        "u",
    ),
    Shape("in a sub-query that groups all", "$m { SELECT (COUNT(?f) AS ?g) WHERE { $f } }", "()"),
    Shape("in a sub-query beside a window", "{ SELECT ?u ?f WHERE { $m $f } }", "u"),
    Shape("keys of a sub-query", "{ SELECT ?u (MAX(?n) AS ?b) WHERE { $m } GROUP BY ?u } $f", "u"),
    Shape("in a group", "$m { $f FILTER (?f > 1) }", "u"),
    Shape("in a group that tests what is not there", "$m { $f FILTER (!BOUND(?n)) }", "u"),
    Shape("inside of a window", "WINDOW :w { ?u :mentions ?n . $f }", "u"),
    Shape("minus", "$m MINUS { $f }", "u"),
    Shape("exists", "$m FILTER EXISTS { $f }", "u"),
    Shape(
        "not exists",
        "$m FILTER NOT EXISTS { SERVICE :svc { ?u :followers ?f FILTER (?f > 2) } }",
        "u",
    ),
    Shape("a service beside another", "$m $f SERVICE :other { ?u :name ?m }", "u; u"),
    Shape("the same service twice", "$m $f $n", "u; u"),
    Shape("the same clause twice", "$m { $f } { $f }", "u; u"),
    Shape("a chain", "$m $k $o", "u; k"),
    Shape("a chain, backwards", "$o $k $m", "u; k"),
    Shape("a chain through an optional", "$m OPTIONAL { $k } $o", "u; k", is_always_exact=False),
    Shape("a chain through a window", "$m $k WINDOW :w { ?k :likes ?l } $o", "u k; k"),
    Shape("two that share more", "$m $k SERVICE :other { ?u :knows ?k }", "u; u"),
    Shape("any service", "$m SERVICE ?x { ?u :name ?m }", "u; u"),
    Shape("any service, named", "$m VALUES ?x { :svc } SERVICE ?x { ?u :name ?m }", "u; u"),
    Shape(
        "optional key",
        "$m OPTIONAL { WINDOW :w { ?u :likes ?k } } SERVICE :svc { ?k :followers ?f }",
        "k",
        is_always_exact=False,
    ),
    Shape(
        "key by bind",
        "$m BIND (IRI(CONCAT(STR(:), STR(?n))) AS ?k) SERVICE :svc { ?k :followers ?f }",
        "k",
    ),
    Shape("key by values", "VALUES ?u { :a :b } $f WINDOW :w { ?x :mentions ?n }", "u"),
    Shape("key by a path", "WINDOW :w { ?x :likes/:likes? ?u } $f", "u"),
    Shape(
        "aggregate over remote values",
        "$m $f",
        "u",
        select="SELECT ?n (SUM(?f) AS ?t) (COUNT(*) AS ?c)",
        tail="GROUP BY ?n",
    ),
    Shape("distinct rows", "$m $g", "u", select="SELECT DISTINCT *"),
    Shape("counts distinct rows", "$m $g", "u", select="SELECT (COUNT(DISTINCT *) AS ?c)"),
    Shape(
        "ranked",
        "$m $f",
        "u",
        select="SELECT ?u ?f (?f + ?n AS ?s)",
        tail="ORDER BY DESC(?s) ?f ?u LIMIT 3",
        arrivals="all",
    ),
    Shape("exists in select", "$m", "()", select="SELECT ?u (EXISTS { $f } AS ?e)"),
    Shape("ask", "$m $f FILTER (?f > 3)", "u", select="ASK"),
]


def triples(text: str) -> list[ox.Triple]:
    found = ox.parse(f"@prefix : <{EX}> . {text}".encode(), format=ox.RdfFormat.TURTLE)
    return [quad.triple for quad in found]


def naive_answer(
    shape: Shape, window: list[ox.Triple], remote: dict[str, ox.Store]
) -> list[str] | bool:
    """Return the rows as texts, in order."""
    store = ox.Store()
    graphs = {f"{EX}w": window}
    graphs |= {name: [quad.triple for quad in data] for name, data in remote.items()}
    for name, content in graphs.items():
        graph = ox.NamedNode(name)
        store.add_graph(graph)
        store.extend(ox.Quad(t.subject, t.predicate, t.object, graph) for t in content)
    result = store.query(shape.naive)
    if isinstance(result, ox.QueryBoolean):
        return bool(result)
    assert isinstance(result, ox.QuerySolutions)
    names = [variable.value for variable in result.variables]
    return sorted(row_text({n: row[n] for n in names if row[n] is not None}) for row in result)


def row_text(bindings: dict[str, object]) -> str:
    """Write a row, without the labels of blank nodes."""
    shown = {n: "_:" if isinstance(t, ox.BlankNode) else t for n, t in bindings.items()}
    return " ".join(f"{name}={shown[name]}" for name in sorted(shown))
