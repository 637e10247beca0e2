"""Groups: aggregates of mixed values, ranked and unranked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.differential.evaluation import Case
from tests.differential.expressions import Aggregate, Arithmetic, Comparison, Expression, Var
from tests.differential.families.drawing import (
    CALCULABLE,
    CONSTANTS,
    NUMBERS,
    POOLS,
    S,
    V,
    condition,
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
from tests.differential.patterns import Window, group_of
from tests.differential.queries import Named, Order, Select
from tests.differential.terms import ex

if TYPE_CHECKING:
    from random import Random

FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX")


def draw(chance: Random, seed: int) -> Case:
    values = pool(chance, chance.choice((NUMBERS, NUMBERS, CALCULABLE, tuple(POOLS))))
    has_kinds = is_so(chance, 0.15)
    window = count_window(chance, of_triples=True) if is_so(chance, 0.15) else time_window(chance)
    chosen = setting(chance, (window,))
    found = triples(chance, values, ("p", "q") if has_kinds else ("p",), "abc")
    stream = elements(chance, times(chance, chosen, chance.randint(1, 14)), found)
    block = [pattern("s", Var("k") if has_kinds else "p", "v")]
    filters = [condition(chance, V, S)] if is_so(chance, 0.25) else []
    where = group_of(Window(ex("w"), group_of(*block, *filters)))
    keys = chance.choice((("s",), ("s",), ("s",), ("k",), ("s", "k"))) if has_kinds else ("s",)
    return Case("groups", seed, grouped(chance, where, keys), chosen, {"s": [stream]})


def grouped(chance: Random, where, keys: tuple[str, ...], value: Expression = V) -> Select:
    """Draw a query over groups: mostly one that ranks them."""
    if is_so(chance, 0.1):
        keys = ()
    main = _aggregate(chance, value)
    named: tuple[Named, ...] = (Named(main, "n"),)
    if is_so(chance, 0.25):
        named += (Named(_aggregate(chance, value), "m"),)
    having = (_having(chance, value),) if is_so(chance, 0.2) else ()
    return Select(
        (*keys, *named),
        where,
        group_by=keys,
        having=having,
        order_by=_conditions(chance, main, keys) if is_so(chance, 0.85) else (),
        **(cut(chance) if is_so(chance, 0.85) else {}),
    )


def _aggregate(chance: Random, value: Expression) -> Expression:
    function = chance.choice(FUNCTIONS)
    if function == "COUNT" and is_so(chance, 0.4):
        return Aggregate("COUNT")
    if function != "COUNT" and is_so(chance, 0.1):
        value = Arithmetic(chance.choice("+*"), value, chance.choice((value, *CONSTANTS)))
    return Aggregate(function, value, distinct=is_so(chance, 0.2))


def _having(chance: Random, value: Expression) -> Expression:
    return chance.choice(
        (
            Comparison(">", Aggregate("COUNT", value), number("1")),
            Comparison("<", Aggregate("SUM", value), number("5")),
            Comparison("!=", Aggregate("MIN", value), number("1")),
        )
    )


def _conditions(chance: Random, main: Expression, keys: tuple[str, ...]) -> tuple[Order, ...]:
    """Draw an order by the aggregate: by its name, in an expression over it, or as it is."""
    by = chance.choice(
        (
            Var("n"),
            Var("n"),
            Var("n"),
            main,
            Arithmetic(chance.choice("+*"), Var("n"), chance.choice(CONSTANTS)),
            Arithmetic("-", number("10"), Var("n")),
        )
    )
    conditions = [order(chance, by)]
    if keys and is_so(chance, 0.2):
        conditions.append(order(chance, Var(chance.choice(keys))))
    return tuple(conditions)
