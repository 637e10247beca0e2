"""SERVICE clauses: which of them are bound, and the plan of each with its endpoint and policy.

SPARQL 1.1 Federated Query, section 3.1, gives a SILENT service that cannot be reached one empty
solution. It is the identity of a join, so the planner drops such a clause and warns the user.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, cast

from rsp_engine.errors import BindingError, Diagnostic
from rsp_engine.evaluators.physical_plan import ServicePlan
from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import projected_variables
from rsp_engine.grammar.write import WriteQueries
from rsp_engine.plan.variables import scope_variables
from rsp_engine.policies.registry import policy_named
from rsp_engine.replica.change_signal import modified_pattern
from rsp_engine.replica.changes import ChangeFeed
from rsp_engine.replica.pattern import RemotePattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.policies.policy import Policy

__all__ = [
    "chosen_policy",
    "refuse_unused_budgets",
    "refuse_unused_services",
    "refuse_unused_weights",
    "remote_pattern",
    "service_plan",
    "unbound_service",
    "without_silent",
]


def unbound_service(service: tree.ServicePattern, options: QueryOptions) -> Diagnostic | None:
    """Return the diagnostic of a clause whose service is not bound; None if it is bound."""
    match service.name:
        case tree.Iri(iri):
            hint = f"give its URL: --service {iri}=URL"
            return None if iri in options.bound_services else _missing(service, hint)
        case tree.Var(name):
            hint = f"SERVICE ?{name} calls every bound service: --service IRI=URL"
            return None if options.bound_services else _missing(service, hint)


def _missing(service: tree.ServicePattern, hint: str) -> Diagnostic:
    message = "SERVICE needs a service binding"
    if service.silent:
        message = "this SERVICE is not bound and is SILENT, so it adds nothing"
    return Diagnostic("semantic", message, service.span, hint)


def without_silent(
    query: tree.QueryUnit, options: QueryOptions
) -> tuple[tree.QueryUnit, tuple[Diagnostic, ...]]:
    """Return a query without SILENT clauses of unbound services, and a warning for each."""
    warnings: list[Diagnostic] = []

    def is_dropped(element: tree.Node) -> bool:
        if not isinstance(element, tree.ServicePattern) or not element.silent:
            return False
        warning = unbound_service(element, options)
        warnings.extend([] if warning is None else [warning])
        return warning is not None

    def change(node: tree.Node) -> tree.Node | None:
        match node:
            case tree.ServicePattern():  # the remote service evaluates its content
                return node
            case tree.GroupPattern(elements):
                kept = (e for e in elements if not is_dropped(e))
                changed = tuple(tree.rewrite_outermost(e, change) for e in kept)
                return tree.GroupPattern(changed, span=node.span)  # type: ignore[arg-type]
            case _:
                return None

    rest = tree.rewrite_outermost(tree.rewrite_tree(query, _with_names), change)
    return (cast("tree.QueryUnit", rest), tuple(warnings)) if warnings else (query, ())


def _with_names(node: tree.Node) -> tree.Node:
    """Name the variables of `SELECT *`, so that those of a dropped clause stay columns."""
    match node:
        case tree.SubSelect(tree.SelectClause(()) as clause, where, modifiers, values):
            return replace(node, clause=_named(clause, where, modifiers, values))
        case tree.QueryUnit(_, _, tree.SelectForm(tree.SelectClause(()) as clause) as form, values):
            named = _named(clause, form.where, form.modifiers, values)
            return replace(node, form=replace(form, clause=named))
        case _:
            return node


def _named(
    clause: tree.SelectClause,
    where: tree.GroupPattern,
    modifiers: tree.Modifiers,
    values: tree.InlineData | None,
) -> tree.SelectClause:
    names = projected_variables(clause, where, modifiers, values)
    return replace(clause, items=tuple(map(tree.Var, names)))


def remote_pattern(clause: tree.ServicePattern, keys: tuple[str, ...]) -> RemotePattern:
    """Return the remote pattern of a clause that is joined by these keys, with full IRIs."""
    assert isinstance(clause.name, tree.Iri), "SERVICE ?s is expanded before"  # noqa: S101
    body = WriteQueries({}).group(clause.group)
    others = (name for name in scope_variables(clause.group) if name not in keys)
    return RemotePattern(clause.name.value, body, keys, tuple(others))


def chosen_policy(options: QueryOptions, default: str) -> Policy:
    """Return the policy that the user names, or the default; raise if there is no such policy."""
    name = options.services.policy or default
    try:
        return policy_named(name, options.policies)
    except ValueError as reason:
        close = get_close_matches(name.upper(), list(options.policies), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        hint += f"The policies are {', '.join(options.policies)}"
        raise BindingError(str(reason), hint) from None


def service_plan(
    pattern: RemotePattern, options: QueryOptions, policy: Policy, instead: str | None = None
) -> ServicePlan:
    """Plan a clause whose service is bound to an endpoint, to a change feed, or to both.

    A service with a feed alone takes no requests: it has no budget and no snapshot. `instead` names
    the policy that this one replaces, and why.
    """
    is_pushed = pattern.service in options.feeds
    service_options = options.services
    connect = options.endpoints.get(pattern.service)
    if connect is None:
        service_options = replace(service_options, budget=0, replica="cache")
        connect = ChangeFeed
    modified = options.modified.get(pattern.service)
    if modified is not None:
        modified_pattern(pattern, modified)  # raises if it cannot be requested
    return ServicePlan(pattern, connect, policy, service_options, is_pushed, modified, instead)


def refuse_unused_services(bound: Collection[str], plans: Iterable[ServicePlan]) -> None:
    """Raise if a service is bound that no query has a SERVICE clause for."""
    used = {plan.pattern.service for plan in plans}
    for iri in sorted(set(bound) - used):
        named = ", ".join(f"<{name}>" for name in sorted(used))
        hint = f"the queries call {named}" if used else "no query has a SERVICE clause"
        raise BindingError(f"no query calls service <{iri}>", hint)


def refuse_unused_budgets(budgets: Collection[str], called: Collection[str]) -> None:
    """Raise if a service has a budget, and no query calls it."""
    for service in sorted(set(budgets) - set(called)):
        hint = f"the queries call {', '.join(f'<{name}>' for name in sorted(called))}"
        raise BindingError(
            f"no query calls service <{service}>, which has a budget",
            hint if called else "no query has a SERVICE clause",
        )


def refuse_unused_weights(
    weights: Collection[str], names: Collection[str], *, has_budget: bool
) -> None:
    """Raise if a weight is of no query, or if there is no budget that the queries share."""
    for query in sorted(set(weights) - set(names)):
        hint = f"the queries are {', '.join(f'<{name}>' for name in sorted(names))}"
        raise BindingError(f"there is no query <{query}> to weigh", hint)
    if weights and not has_budget:
        raise BindingError(
            "queries have a weight only in the budget of a service",
            "give the service a budget: --service-budget IRI=N/DURATION",
        )
