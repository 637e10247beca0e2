"""Ranked queries of pairs: with and without an order of the pair, with a shared variable, with OR.

Each object comes in one element, or anywhere in the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.differential.evaluation import Case
from tests.differential.expressions import (
    Arithmetic,
    Call,
    Comparison,
    Expression,
    Logic,
    Minus,
    Var,
)
from tests.differential.families.drawing import (
    count_window,
    cut,
    elements,
    is_so,
    number,
    order,
    pattern,
    pool,
    setting,
    time_window,
    times,
    triples,
)
from tests.differential.families.elements import readings
from tests.differential.patterns import Filter, TriplePattern, Window, group_of
from tests.differential.queries import Named, Select
from tests.differential.terms import ex

if TYPE_CHECKING:
    from random import Random

A, B, X, Y = Var("a"), Var("b"), Var("x"), Var("y")


def draw(chance: Random, seed: int) -> Case:
    window = count_window(chance, of_triples=False) if is_so(chance, 0.2) else time_window(chance)
    chosen = setting(chance, (window,))
    at = times(chance, chosen, chance.randint(2, 8))
    is_of_readings = is_so(chance, 0.5)
    if is_of_readings:
        stream = readings(chance, at)
    else:
        values = pool(chance, ("few", "integers", "decimals", "doubles", "special", "texts"))
        stream = elements(chance, at, triples(chance, values, ("free", "rain"), "abc", 8), 2)
    select = _select(chance, is_of_readings=is_of_readings)
    match = chance.choice(("window", "element"))
    return Case("pairs", seed, select, chosen, {"s": [stream]}, match=match)  # type: ignore[arg-type]


def _select(chance: Random, *, is_of_readings: bool) -> Select:
    filters = _filters(chance)
    inside, outside = (filters, []) if is_so(chance, 0.7) else ([], filters)
    by = _score(chance)
    named: tuple[str | Named, ...] = ()
    if is_so(chance, 0.6):
        named, by = (Named(by, "score"),), Var("score")
    block = Window(ex("w"), group_of(*_halves(chance, are_long=is_of_readings), *inside))
    shown = chance.choice((("a", "b", "x", "y"), ("a", "b"), ("x", "y")))
    return Select(
        (*shown, *named),
        group_of(block, *outside),
        order_by=(order(chance, by),),
        **cut(chance),
    )


def _halves(chance: Random, *, are_long: bool) -> tuple[TriplePattern, ...]:
    if not are_long:
        second = "free" if is_so(chance, 0.8) else "rain"
        return (pattern("a", "free", "x"), pattern("b", second, "y"))
    shared = is_so(chance, 0.4)
    return (
        pattern("a", "free", "x"),
        pattern("a", "rain", "k"),
        pattern("b", "free", "y"),
        pattern("b", "rain", "k" if shared else "l"),
    )


def _filters(chance: Random) -> list[Filter]:
    ordered = chance.choice(
        (
            Comparison("<", Call("STR", (A,)), Call("STR", (B,))),
            Comparison("<", X, Y),
            Comparison(">", Call("STR", (B,)), Call("STR", (A,))),
        )
    )
    either = Logic("||", ordered, Comparison("=", X, number("1")))
    choices: tuple[list[Expression], ...] = (
        [ordered],
        [ordered],
        [],
        [either],
        [ordered, Comparison("!=", X, Y)],
    )
    found = chance.choice(choices)
    if is_so(chance, 0.2):
        found = [*found, Comparison(">", X, number("1")), Comparison(">", Y, number("1"))]
    return list(map(Filter, found))


def _score(chance: Random) -> Expression:
    apart = Call("ABS", (Arithmetic("-", X, Y),))
    return chance.choice(
        (
            apart,
            Minus(apart),
            Arithmetic("+", X, Y),
            Arithmetic("-", X, Y),
            Arithmetic("*", X, Y),
            Arithmetic("/", X, Y),
            Arithmetic("*", apart, X),
        )
    )
