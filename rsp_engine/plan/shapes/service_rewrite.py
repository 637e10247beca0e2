"""SERVICE on the general path: answered from replicas, which the query reads as graphs.

Oxigraph would call by itself whatever a SERVICE names. So no text that it is given has one: the
data of each clause stand in a graph of the store, a node for each remote solution, and the clause
is turned into a pattern over that graph.

    SERVICE :s { ?user :followers ?n }
    GRAPH <urn:rsp-engine:service:0> { [ <...:variable:user> ?user ; <...:variable:n> ?n ] }

    SERVICE ?s { P }     { VALUES ?s { :a } SERVICE :a { P } } UNION ..., for all services bound

SILENT changes nothing where a service is bound: a replica always answers. See `silent_services` for
where it is not.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.service.config import ServiceClause, ServiceConfig
from rsp_engine.grammar import tree
from rsp_engine.grammar.write.queries import WriteQueries
from rsp_engine.operators.sparql.projector import variable_iri
from rsp_engine.plan.arrivals import latest_of, ties, with_latest
from rsp_engine.plan.services import chosen_policy, service_plan
from rsp_engine.plan.sparql.element_blocks import ByElement
from rsp_engine.plan.sparql.general import sparql_path
from rsp_engine.plan.sparql.service_context import Clause, around
from rsp_engine.plan.sparql.solution_nodes import in_text, read_nodes
from rsp_engine.plan.variables import certain_variables, named_variables, visible_variables
from rsp_engine.policies.lru import WSJ_LRU
from rsp_engine.policies.voi import Voi
from rsp_engine.replica.pattern import RemotePattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.policies.policy import Policy

__all__ = [
    "DEFAULT_WINDOW_POLICY",
    "has_service",
    "remote_pattern",
    "service_path",
]

DEFAULT_WINDOW_POLICY = "WSJ-WBM"


def has_service(query: tree.QueryUnit) -> bool:
    """Tell whether a query has a SERVICE clause."""
    return any(True for _ in tree.find(query, tree.ServicePattern))


def service_path(
    query: tree.QueryUnit, options: QueryOptions, meant: ByElement | None = None
) -> tuple[ServiceConfig, tuple[ServicePlan, ...]]:
    """Return the configuration of the general operator, and how the clauses are answered.

    `meant` is the query over what its windows hold, if that is more than their triples.
    """
    policy, instead = _policy(options)
    meant = meant or ByElement(query, {})
    latest, last = latest_of(query, options, meant), ties(query, meant.nodes)
    query = _numbered(meant.query, options.bound_services)
    clauses = {clause.number: clause for clause in tree.find(query, Clause)}
    local = {number: _local(clause, query) for number, clause in clauses.items()}

    def plain(node: tree.Node) -> tree.Node:
        return local[node.number] if isinstance(node, Clause) else node

    served, plans = [], []
    for number, keys, beside in _in_turn(query, clauses):
        clause = clauses[number]
        asked = _asked(query, keys, tree.rewrite_tree(beside, plain), options) if keys else None
        is_marked = not certain_variables(clause.group)
        served.append(ServiceClause(_graph(clause), asked, is_marked))
        plans.append(service_plan(remote_pattern(clause, keys), options, policy, instead))
    changed: Any = tree.rewrite_tree(query, plain)
    if latest is not None:
        changed = with_latest(changed, latest)
    config = sparql_path(changed, options.functions, last)
    if latest is not None:
        config = replace(config, latest=latest, timed=latest.scan)
    given = {f.name: getattr(config, f.name) for f in fields(config)}
    return ServiceConfig(**given, clauses=tuple(served)), tuple(plans)


def remote_pattern(clause: tree.ServicePattern, keys: tuple[str, ...]) -> RemotePattern:
    """Return what a clause asks for, with full IRIs, if it is joined by these keys."""
    assert isinstance(clause.name, tree.Iri), "a variable stands for services"  # noqa: S101
    body = WriteQueries({}).group(clause.group)
    others = (name for name in in_text(clause.group) if name not in keys)
    return RemotePattern(clause.name.value, body, keys, tuple(others))


def _policy(options: QueryOptions) -> tuple[Policy, str | None]:
    """Return the policy, unless it looks at a list that only a top-k operator keeps.

    One that learns what objects may score needs a score, and another elects in its place.
    """
    policy = chosen_policy(options, DEFAULT_WINDOW_POLICY)
    if isinstance(policy, Voi):
        return WSJ_LRU, f"{policy.name}: on the general path no remote value moves a score"
    if policy.proposer == "list":
        able = [name for name, other in options.policies.items() if other.proposer != "list"]
        message = f"the policy {policy.name} elects from the list of a top-k operator"
        hint = f"this query takes the general path, which can use {', '.join(able)}"
        raise BindingError(message, hint)
    return policy, None


def _numbered(query: tree.QueryUnit, services: tuple[str, ...]) -> tree.QueryUnit:
    """Give each clause a number. `SERVICE ?s` becomes a clause for each service that is bound."""
    numbers = count()

    def clause(service: tree.Node) -> tree.Node | None:
        if not isinstance(service, tree.ServicePattern):
            return None

        def of(iri: tree.Iri) -> Clause:
            return Clause(iri, service.group, service.silent, next(numbers), span=service.span)

        if isinstance(service.name, tree.Iri):
            return of(service.name)
        groups = [
            tree.GroupPattern((tree.InlineData((service.name,), ((iri,),)), of(iri)))
            for iri in map(tree.Iri, services)
        ]
        return groups[0] if len(groups) == 1 else tree.UnionPattern(tuple(groups))

    # What is inside of a clause belongs to its service.
    changed: Any = tree.rewrite_outermost(query, clause)
    return changed  # type: ignore[no-any-return]


def _in_turn(
    query: tree.QueryUnit, clauses: dict[int, Clause]
) -> Iterator[tuple[int, tuple[str, ...], tree.GroupPattern]]:
    """Yield clauses with their keys, and with the group that tells these.

    First come those whose keys are known without any remote data, then those whose keys the data
    of the others tell. What is left is asked for as a whole.
    """
    places = around(query)
    left, done = list(clauses), list[int]()
    while left:
        for number in left:
            beside = places[number].group(done)
            if keys := _keys(clauses[number], beside):
                break
        else:
            number, keys, beside = left[0], (), tree.GroupPattern(())
        yield number, keys, beside
        left.remove(number)
        if not any(_keys(clauses[n], places[n].group(())) for n in left):
            done = [n for n in clauses if n not in left]


def _keys(clause: Clause, beside: tree.GroupPattern) -> tuple[str, ...]:
    """Return the variables that a clause always binds, and that stand beside it as well."""
    known = certain_variables(clause.group) & visible_variables(beside)
    return tuple(name for name in in_text(clause.group) if name in known)


def _graph(clause: Clause) -> str:
    return f"urn:rsp-engine:service:{clause.number}"


def _local(clause: Clause, query: tree.QueryUnit) -> tree.Pattern:
    """Return the pattern over the graph of a clause."""
    graph = tree.Iri(_graph(clause))
    return read_nodes(
        clause.group,
        variable_iri,
        lambda group: tree.GraphPattern(graph, group),
        named_variables(query),
    )


def _asked(
    query: tree.QueryUnit, keys: tuple[str, ...], beside: tree.Node, options: QueryOptions
) -> SparqlConfig:
    """Return a text that gives each key once."""
    clause = tree.SelectClause(tuple(map(tree.Var, keys)), "DISTINCT")
    where: Any = beside
    select = tree.SelectForm(clause, query.form.dataset, where, tree.Modifiers())
    asked = replace(query, register=None, form=select, values=None)
    return sparql_path(asked, options.functions)
