"""`WINDOW ?w` over two windows: each is read by itself, and ?w is bound outside of the block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.differential.evaluation import Case
from tests.differential.expressions import Aggregate, Call, Comparison, Constant, Not, Var
from tests.differential.families.drawing import (
    V,
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
from tests.differential.patterns import (
    Exists,
    Filter,
    Group,
    Minus,
    Optional,
    Pattern,
    SubSelect,
    Union,
    Window,
    group_of,
)
from tests.differential.queries import Named, Order, Select
from tests.differential.terms import ex

if TYPE_CHECKING:
    from random import Random

W = Var("w")


def draw(chance: Random, seed: int) -> Case:
    streams = chance.choice(("s", "st"))
    windows = (time_window(chance, "w", "s"), time_window(chance, "x", streams[-1]))
    chosen = setting(chance, windows)
    found = triples(
        chance, pool(chance, ("few", "integers", "texts", "iris")), ("p", "q"), "abc", 8
    )
    drawn = {
        name: [elements(chance, times(chance, chosen, chance.randint(0, 8)), found)]
        for name in streams
    }
    inside, names = _inside(chance)
    match: Any = "element" if is_so(chance, 0.2) else "window"
    return Case("variable", seed, _select(chance, inside, names), chosen, drawn, match=match)


def _inside(chance: Random) -> tuple[tuple[Pattern, ...], tuple[str, ...]]:
    """Draw what stands in the block, and its variables."""
    first, second = pattern("s", "p", "v"), pattern("s", "q", "u")
    counted = SubSelect(Select((Named(Aggregate("COUNT"), "n"),), group_of(first)))
    by_subject = SubSelect(
        Select(("s", Named(Aggregate("MAX", V), "n")), group_of(first), group_by=("s",))
    )
    highest = SubSelect(
        Select(("s", "v"), group_of(first), order_by=(Order(V), Order(Var("s"))), limit=1)
    )
    return chance.choice(
        (
            ((first,), ("s", "v")),
            ((counted,), ("n",)),
            ((by_subject,), ("s", "n")),
            ((highest,), ("s", "v")),
            ((first, counted), ("s", "v", "n")),
            ((first, Minus(group_of(pattern("t", "q", "z")))), ("s", "v")),
            ((first, Minus(group_of(second))), ("s", "v")),
            ((first, Filter(Call("BOUND", (W,)))), ("s", "v")),
            ((first, Filter(Not(Call("BOUND", (W,))))), ("s", "v")),
            ((first, Optional(group_of(second))), ("s", "v", "u")),
            ((first, Exists(group_of(second), is_negated=is_so(chance, 0.5))), ("s", "v")),
            ((Union((group_of(first), group_of(second))),), ("s", "v", "u")),
            ((first, Optional(group_of(second, Filter(Call("BOUND", (W,)))))), ("s", "v", "u")),
        )
    )


def _select(chance: Random, inside: tuple[Pattern, ...], names: tuple[str, ...]) -> Select:
    block = Window(W, Group(inside))
    outside: list[Pattern] = []
    if is_so(chance, 0.2):
        outside.append(Filter(Comparison(chance.choice(("=", "!=")), W, Constant(ex("x")))))
    if is_so(chance, 0.2):
        outside.append(Window(ex("x"), group_of(pattern("s", "p", "y"))))
        names = (*names, "y") if "s" in names else names
    where = group_of(block, *outside)
    if is_so(chance, 0.25):
        named = (Named(Aggregate("COUNT"), "count"),)
        having = (Comparison(">", Aggregate("COUNT"), number("1")),) if is_so(chance, 0.3) else ()
        return Select(("w", *named), where, group_by=("w",), having=having)
    shown = ("w", *names) if is_so(chance, 0.7) else names
    if is_so(chance, 0.3):
        orders = tuple(Order(Var(n), descending=is_so(chance, 0.5)) for n in (names[-1], "w"))
        return Select(shown, where, order_by=orders, limit=chance.choice((None, 1, 3)))
    return Select(shown, where, distinct=is_so(chance, 0.15))
