"""SERVICE SILENT of a service that is not bound: one solution that binds nothing.

That is what SPARQL 1.1 Federated Query, section 3.1, gives for a SILENT service that cannot be
asked. It is the identity of a join, so the clause is left out, and the user is warned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from rsp_engine.errors import Diagnostic
from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import projected_variables

if TYPE_CHECKING:
    from rsp_engine.plan.options import QueryOptions

__all__ = ["unbound", "without_silent"]


def unbound(service: tree.ServicePattern, options: QueryOptions) -> Diagnostic | None:
    """Return what is wrong with a clause whose service is not bound, and nothing if it is."""
    match service.name:
        case tree.Iri(iri):
            hint = f"say where it is: --service {iri}=URL"
            return None if iri in options.bound_services else _missing(service, hint)
        case tree.Var(name):
            hint = f"SERVICE ?{name} asks every service that is bound: --service IRI=URL"
            return None if options.bound_services else _missing(service, hint)


def _missing(service: tree.ServicePattern, hint: str) -> Diagnostic:
    message = "SERVICE needs a service binding"
    if service.silent:
        message = "this SERVICE is not bound: it is SILENT, so it adds nothing"
    return Diagnostic("semantic", message, service.span, hint)


def without_silent(
    query: tree.QueryUnit, options: QueryOptions
) -> tuple[tree.QueryUnit, tuple[Diagnostic, ...]]:
    """Return a query without SILENT clauses whose service is not bound, and warnings of them."""
    warnings: list[Diagnostic] = []

    def is_left_out(element: tree.Node) -> bool:
        if not isinstance(element, tree.ServicePattern) or not element.silent:
            return False
        wrong = unbound(element, options)
        warnings.extend([] if wrong is None else [wrong])
        return wrong is not None

    def change(node: tree.Node) -> tree.Node | None:
        match node:
            case tree.ServicePattern():  # what is inside of it belongs to its service
                return node
            case tree.GroupPattern(elements):
                kept = (e for e in elements if not is_left_out(e))
                made = tuple(tree.rewrite_outermost(e, change) for e in kept)
                return tree.GroupPattern(made, span=node.span)  # type: ignore[arg-type]
            case _:
                return None

    made = tree.rewrite_outermost(tree.rewrite_tree(query, _with_names), change)
    return (cast("tree.QueryUnit", made), tuple(warnings)) if warnings else (query, ())


def _with_names(node: tree.Node) -> tree.Node:
    """Name the variables of `SELECT *`: those of a clause that is left out stay among them."""
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
