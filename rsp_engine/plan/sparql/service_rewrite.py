"""SERVICE on the general path: clauses rewritten to patterns over graphs of replica data.

Oxigraph would itself send requests to the endpoint of a SERVICE, so no text for Oxigraph has a
SERVICE clause. The store has a graph for each clause, with a node for each remote solution, and the
clause becomes a pattern over this graph.

    SERVICE :s { ?user :followers ?n }
    GRAPH <urn:rsp-engine:service:0> { [ <...:variable:user> ?user ; <...:variable:n> ?n ] }

    SERVICE ?s { P }     { VALUES ?s { :a } SERVICE :a { P } } UNION ..., for all bound services

SILENT has no effect on a bound service, as a replica always answers. `silent_services` handles
services that are not bound.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.service.config import ServiceClause, ServiceConfig
from rsp_engine.grammar import tree
from rsp_engine.operators.sparql.projector import variable_iri
from rsp_engine.plan.arrivals import latest_of, ties, with_latest
from rsp_engine.plan.services import chosen_policy, remote_pattern, service_plan
from rsp_engine.plan.sparql.element_blocks import ByElement
from rsp_engine.plan.sparql.general import sparql_path
from rsp_engine.plan.sparql.service_context import NumberedService, service_contexts
from rsp_engine.plan.sparql.solution_nodes import read_nodes
from rsp_engine.plan.variables import (
    certain_variables,
    named_variables,
    scope_variables,
    visible_variables,
)
from rsp_engine.policies.lru import WSJ_LRU
from rsp_engine.policies.voi import Voi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.plan.logical.query import LogicalQuery
    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.policies.policy import Policy

__all__ = [
    "DEFAULT_WINDOW_POLICY",
    "service_path",
]

DEFAULT_WINDOW_POLICY = "WSJ-WBM"


def service_path(
    query: LogicalQuery, options: QueryOptions, rewritten: ByElement | None = None
) -> tuple[ServiceConfig, tuple[ServicePlan, ...]]:
    """Return the configuration of the general path, and the plans of the SERVICE clauses.

    `rewritten` is the query over the solutions of elements, if its windows hold these.
    """
    policy, instead = _policy(options)
    rewritten = rewritten or ByElement(query.unit, {})
    latest, last = latest_of(query, options, rewritten), ties(query, rewritten.nodes)
    unit = _numbered(rewritten.query, options.bound_services)
    clauses = {clause.number: clause for clause in tree.find(unit, NumberedService)}
    local = {number: _local(clause, unit) for number, clause in clauses.items()}

    def plain(node: tree.Node) -> tree.Node:
        return local[node.number] if isinstance(node, NumberedService) else node

    served, plans = [], []
    for number, keys, beside in _in_turn(unit, clauses):
        clause = clauses[number]
        local_context = tree.rewrite_tree(beside, plain)
        keys_config = _keys_config(unit, keys, local_context, options) if keys else None
        is_marked = not certain_variables(clause.group)
        served.append(ServiceClause(_graph(clause), keys_config, is_marked))
        plans.append(service_plan(remote_pattern(clause, keys), options, policy, instead))
    changed: Any = tree.rewrite_tree(unit, plain)
    if latest is not None:
        changed = with_latest(changed, latest)
    config = sparql_path(changed, options.functions, last)
    if latest is not None:
        config = replace(config, latest=latest, timed=latest.scan)
    return ServiceConfig(config, tuple(served)), tuple(plans)


def _policy(options: QueryOptions) -> tuple[Policy, str | None]:
    """Return the policy, and which policy it replaces and why.

    VOI needs a score and is replaced. A policy that elects from the list of a top-k operator is
    refused.
    """
    policy = chosen_policy(options, DEFAULT_WINDOW_POLICY)
    if isinstance(policy, Voi):
        return WSJ_LRU, f"{policy.name}: the general path has no score to predict"
    if policy.proposer == "list":
        able = [name for name, other in options.policies.items() if other.proposer != "list"]
        message = f"the policy {policy.name} elects from the list of a top-k operator"
        hint = f"this query takes the general path, which can use {', '.join(able)}"
        raise BindingError(message, hint)
    return policy, None


def _numbered(query: tree.QueryUnit, services: tuple[str, ...]) -> tree.QueryUnit:
    """Give each clause a number; `SERVICE ?s` becomes a clause for each bound service."""
    numbers = count()

    def clause(service: tree.Node) -> tree.Node | None:
        if not isinstance(service, tree.ServicePattern):
            return None

        def of(iri: tree.Iri) -> NumberedService:
            return NumberedService(
                iri, service.group, service.silent, next(numbers), span=service.span
            )

        if isinstance(service.name, tree.Iri):
            return of(service.name)
        groups = [
            tree.GroupPattern((tree.InlineData((service.name,), ((iri,),)), of(iri)))
            for iri in map(tree.Iri, services)
        ]
        return groups[0] if len(groups) == 1 else tree.UnionPattern(tuple(groups))

    # The remote service evaluates the content of a clause, nested clauses included.
    changed: Any = tree.rewrite_outermost(query, clause)
    return changed  # type: ignore[no-any-return]


def _in_turn(
    query: tree.QueryUnit, clauses: dict[int, NumberedService]
) -> Iterator[tuple[int, tuple[str, ...], tree.GroupPattern]]:
    """Yield the clauses in the order of fetching, with their keys and the group that gives these.

    Clauses whose keys are known without remote data come first, then those whose keys depend on the
    data of other clauses. A clause without keys is fetched as a whole.
    """
    contexts = service_contexts(query)
    left, done = list(clauses), list[int]()
    while left:
        for number in left:
            beside = contexts[number].group(done)
            if keys := _keys(clauses[number], beside):
                break
        else:
            number, keys, beside = left[0], (), tree.GroupPattern(())
        yield number, keys, beside
        left.remove(number)
        if not any(_keys(clauses[n], contexts[n].group(())) for n in left):
            done = [n for n in clauses if n not in left]


def _keys(clause: NumberedService, beside: tree.GroupPattern) -> tuple[str, ...]:
    """Return the join key: the variables that a clause always binds and its context has too."""
    known = certain_variables(clause.group) & visible_variables(beside)
    return tuple(name for name in scope_variables(clause.group) if name in known)


def _graph(clause: NumberedService) -> str:
    return f"urn:rsp-engine:service:{clause.number}"


def _local(clause: NumberedService, query: tree.QueryUnit) -> tree.Pattern:
    """Return the pattern that reads the graph of a clause."""
    graph = tree.Iri(_graph(clause))
    return read_nodes(
        clause.group,
        variable_iri,
        lambda group: tree.GraphPattern(graph, group),
        named_variables(query),
    )


def _keys_config(
    query: tree.QueryUnit, keys: tuple[str, ...], beside: tree.Node, options: QueryOptions
) -> SparqlConfig:
    """Return a query that gives each key once."""
    clause = tree.SelectClause(tuple(map(tree.Var, keys)), "DISTINCT")
    where: Any = beside
    select = tree.SelectForm(clause, query.form.dataset, where, tree.Modifiers())
    keys_query = replace(query, register=None, form=select, values=None)
    return sparql_path(keys_query, options.functions)
