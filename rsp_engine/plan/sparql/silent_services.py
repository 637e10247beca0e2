"""SERVICE SILENT with an unbound service: one empty solution.

SPARQL 1.1 Federated Query, section 3.1, defines this result for a SILENT service that cannot be
reached. It is the identity of a join, so the planner drops the clause and warns the user.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from rsp_engine.errors import Diagnostic
from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import projected_variables

if TYPE_CHECKING:
    from rsp_engine.plan.options import QueryOptions

__all__ = ["unbound_service", "without_silent"]


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
