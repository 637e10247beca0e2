"""Rewriting of logical plans: one rule, one function; `RULES` is their order.

A rule looks at one node whose inputs have been rewritten, and returns a node that means the same.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from rsp_engine.plan.logical.algebra import Bgp, Filter, Join, Logical

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RULES", "apply_rules"]


def drop_empty_joins(node: Logical) -> Logical:
    """Join({}, P) = P = Join(P, {}): SPARQL 1.1, section 18.2.2.8."""
    match node:
        case Join(Bgp(()), other) | Join(other, Bgp(())):
            return other
        case _:
            return node


def merge_filters(node: Logical) -> Logical:
    """Filter(a, Filter(b, P)) = Filter(b && a, P)."""
    match node:
        case Filter(outer, Filter(inner, below)):
            return Filter((*inner, *outer), below)
        case _:
            return node


def merge_patterns(node: Logical) -> Logical:
    """Join(Bgp(a), Bgp(b)) = Bgp(a b): blank nodes of two patterns never share a label."""
    match node:
        case Join(Bgp(left), Bgp(right)):
            return Bgp((*left, *right))
        case _:
            return node


RULES: tuple[Callable[[Logical], Logical], ...] = (
    drop_empty_joins,
    merge_filters,
    merge_patterns,
)


def apply_rules(node: Logical, rules: tuple[Callable[[Logical], Logical], ...] = RULES) -> Logical:
    """Apply the rules to every node, inputs first."""
    changed: dict[str, Any] = {
        f.name: apply_rules(value, rules)
        for f in fields(node)
        if isinstance(value := getattr(node, f.name), Logical)
    }
    node = replace(node, **changed) if changed else node
    for rule in rules:
        node = rule(node)
    return node
