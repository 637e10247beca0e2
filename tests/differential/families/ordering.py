"""Rankings and orders by terms of every kind, and by expressions over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.differential.evaluation import Case
from tests.differential.expressions import Expression, Var
from tests.differential.families.drawing import (
    CALCULABLE,
    NUMBERS,
    POOLS,
    S,
    V,
    condition,
    count_window,
    cut,
    elements,
    is_so,
    of_term,
    order,
    pattern,
    pool,
    score,
    setting,
    time_window,
    times,
    triples,
)
from tests.differential.patterns import TriplePattern, Window, group_of
from tests.differential.queries import Named, Select
from tests.differential.terms import ex

if TYPE_CHECKING:
    from random import Random


def draw(chance: Random, seed: int) -> Case:
    is_calculated = is_so(chance, 0.5)
    names = chance.choice((NUMBERS, CALCULABLE)) if is_calculated else tuple(POOLS)
    values = pool(chance, names)
    several = is_so(chance, 0.2)
    patterns = _patterns(chance, several=several)
    window = count_window(chance, of_triples=True) if is_so(chance, 0.15) else time_window(chance)
    chosen = setting(chance, (window,))
    found = triples(chance, values, ("p", "q") if several else ("p",))
    stream = elements(chance, times(chance, chosen, chance.randint(1, 14)), found)
    select = _select(chance, patterns, is_calculated=is_calculated)
    return Case("order", seed, select, chosen, {"s": [stream]})


def _patterns(chance: Random, *, several: bool) -> tuple[TriplePattern, ...]:
    if several:
        return (pattern("s", "p", "v"), pattern("s", "q", "u"))
    return (pattern("s", Var("k") if is_so(chance, 0.15) else "p", "v"),)


def _select(chance: Random, patterns: tuple[TriplePattern, ...], *, is_calculated: bool) -> Select:
    names = ["v", "u"] if len(patterns) > 1 else ["v"]

    def expression() -> Expression:
        if is_calculated:
            return score(chance, names)
        return of_term(chance, Var(chance.choice(names)), S)

    filters = [condition(chance, V, S)] if is_so(chance, 0.3) else []
    inside, outside = (filters, []) if is_so(chance, 0.5) else ([], filters)
    first = expression()
    named: tuple[str | Named, ...] = ()
    if is_so(chance, 0.5):
        named, first = (Named(first, "score"),), Var("score")
    conditions = [order(chance, first)]
    while is_so(chance, 0.25):
        conditions.append(order(chance, chance.choice((V, S, expression()))))
    shown = chance.choice((("s", *names), ("s", *names), tuple(names), ("s",)))
    block = Window(ex("w"), group_of(*patterns, *inside))
    return Select(
        (*shown, *named),
        group_of(block, *outside),
        order_by=tuple(conditions),
        **(cut(chance) if is_so(chance, 0.9) else {}),
    )
