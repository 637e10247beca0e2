"""Rewrite rules of logical plans: one function for each rule, applied in the order of `RULES`.

A rule takes a node whose inputs are already rewritten and returns an equivalent node.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from rsp_engine.plan.logical.algebra import Bgp, Filter, Join, Logical

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RULES", "apply_rules"]


def drop_empty_joins(node: Logical) -> Logical:
    """Rewrite Join({}, P) and Join(P, {}) to P (SPARQL 1.1, section 18.2.2.8)."""
    match node:
        case Join(Bgp(()), other) | Join(other, Bgp(())):
            return other
        case _:
            return node


def merge_filters(node: Logical) -> Logical:
    """Rewrite Filter(a, Filter(b, P)) to Filter(b && a, P)."""
    match node:
        case Filter(outer, Filter(inner, below)):
            return Filter((*inner, *outer), below)
        case _:
            return node


def merge_patterns(node: Logical) -> Logical:
    """Rewrite Join(Bgp(a), Bgp(b)) to Bgp(a b): two patterns never share a blank node label."""
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
    """Apply the rules to every node of a plan, inputs first."""
    changed: dict[str, Any] = {
        f.name: apply_rules(value, rules)
        for f in fields(node)
        if isinstance(value := getattr(node, f.name), Logical)
    }
    node = replace(node, **changed) if changed else node
    for rule in rules:
        node = rule(node)
    return node
