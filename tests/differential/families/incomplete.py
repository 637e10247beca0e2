"""Attributes of one key in several streams, put together by UNION or OPTIONAL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.differential.evaluation import Case
from tests.differential.expressions import (
    Aggregate,
    Arithmetic,
    Call,
    Comparison,
    Expression,
    Var,
)
from tests.differential.families.drawing import (
    V,
    cut,
    elements,
    is_so,
    number,
    pattern,
    pool,
    setting,
    time_window,
    times,
    triples,
)
from tests.differential.patterns import Filter, Optional, Pattern, Union, Window, group_of
from tests.differential.queries import Named, Order, Select
from tests.differential.terms import ex
from tests.differential.windows import Time

if TYPE_CHECKING:
    from random import Random

KEY = "o"


def draw(chance: Random, seed: int) -> Case:
    streams = "stu"[: chance.choice((2, 2, 3))]
    first = time_window(chance, "s", "s")
    windows = tuple(
        Time(name, name, first.range, first.step)
        if is_so(chance, 0.5)
        else time_window(chance, name, name)
        for name in streams
    )
    chosen = setting(chance, windows, r2s="RSTREAM")
    names = chance.choice((("few", "decimals"), ("few", "integers", "decimals", "doubles")))
    if is_so(chance, 0.25):
        names = (*names, "special", "texts", "large", "floats")
    values = pool(chance, names)
    drawn = {
        name: [
            elements(
                chance,
                times(chance, chosen, chance.randint(0, 9)),
                triples(chance, values, (f"p{name}",), "abcde", 8),
            )
        ]
        for name in streams
    }
    select = (_union if is_so(chance, 0.5) else _optional)(chance, streams)
    return Case("incomplete", seed, select, chosen, drawn)


def _block(name: str, variable: str, *more: Pattern) -> Window:
    return Window(ex(name), group_of(pattern(KEY, f"p{name}", variable), *more))


def _union(chance: Random, streams: str) -> Select:
    filters = [Filter(Comparison("<", V, number("5")))] if is_so(chance, 0.2) else []
    where = group_of(Union(tuple(group_of(_block(name, "v", *filters)) for name in streams)))
    added: Expression = Aggregate(chance.choice(("SUM", "SUM", "MAX", "COUNT", "AVG")), V)
    if is_so(chance, 0.2):
        added = Arithmetic("+", Arithmetic("*", number("2"), added), number("1"))
    return Select(
        (KEY, Named(added, "score")),
        where,
        group_by=(KEY,),
        order_by=(Order(Var("score"), descending=is_so(chance, 0.9)),),
        **cut(chance),
    )


def _optional(chance: Random, streams: str) -> Select:
    first, others = streams[0], streams[1:]
    blocks = [Optional(group_of(_block(name, f"v{name}"))) for name in others]
    added: Expression = Var(f"v{first}")
    for name in others:
        part: Expression = Call("COALESCE", (Var(f"v{name}"), number("0")))
        if is_so(chance, 0.4):
            part = Arithmetic("*", number("2"), part)
        added = Arithmetic("+", added, part)
    return Select(
        (KEY, Named(added, "score")),
        group_of(_block(first, f"v{first}"), *blocks),
        order_by=(Order(Var("score"), descending=is_so(chance, 0.9)),),
        **cut(chance),
    )
