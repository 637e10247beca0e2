"""`match="element"`: solutions of several patterns, none of which spans two elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.differential.evaluation import Case
from tests.differential.expressions import Aggregate, Arithmetic, Call, Comparison, Var
from tests.differential.families.drawing import (
    S,
    condition,
    count_window,
    cut,
    is_so,
    number,
    order,
    pattern,
    pool,
    score,
    setting,
    time_window,
    times,
)
from tests.differential.families.groups import grouped
from tests.differential.patterns import (
    Bind,
    Exists,
    Group,
    Minus,
    Optional,
    Pattern,
    SubSelect,
    Union,
    Window,
    group_of,
)
from tests.differential.queries import Named, Select
from tests.differential.terms import Triple, ex
from tests.differential.windows import Element

if TYPE_CHECKING:
    from random import Random

F, R = Var("f"), Var("r")
READING = (pattern("s", "free", "f"), pattern("s", "rain", "r"))


def draw(chance: Random, seed: int) -> Case:
    window = count_window(chance, of_triples=False) if is_so(chance, 0.15) else time_window(chance)
    chosen = setting(chance, (window,))
    at = times(chance, chosen, chance.randint(2, 12))
    select = chance.choice((_ranked, _ranked, _grouped, _unranked, _unranked))(chance)
    stream = readings(chance, at)
    return Case("element", seed, select, chosen, {"s": [stream]}, match="element")


def readings(chance: Random, at: list[int]) -> list[Element]:
    """Draw elements of some readings each: of several subjects, some of them without a part."""
    free = pool(chance, ("few", "integers", "decimals", "doubles"))
    rain = pool(chance, ("few", "decimals", "doubles", "texts"))

    def reading() -> list[Triple]:
        subject = ex(chance.choice("bhk"))
        parts: list[Triple] = [
            (subject, ex("free"), chance.choice(free)),
            (subject, ex("rain"), chance.choice(rain)),
        ]
        return parts if is_so(chance, 0.85) else [chance.choice(parts)]

    return [
        Element(time, frozenset(t for _ in range(chance.choice((1, 1, 2))) for t in reading()))
        for time in at
    ]


def _block(*inside: Pattern) -> Group:
    return group_of(Window(ex("w"), group_of(*inside)))


def _ranked(chance: Random) -> Select:
    filters = [condition(chance, F, S)] if is_so(chance, 0.3) else []
    by = chance.choice((F, R, score(chance, ["f", "r"]), score(chance, ["f"])))
    named: tuple[str | Named, ...] = ()
    if is_so(chance, 0.4):
        named, by = (Named(by, "score"),), Var("score")
    conditions = [order(chance, by)]
    if is_so(chance, 0.2):
        conditions.append(order(chance, chance.choice((S, R))))
    shown = chance.choice((("s", "f", "r"), ("s", "f"), ("f",)))
    return Select(
        (*shown, *named), _block(*READING, *filters), order_by=tuple(conditions), **cut(chance)
    )


def _grouped(chance: Random) -> Select:
    return grouped(chance, _block(*READING), ("s",), chance.choice((F, R)))


def _unranked(chance: Random) -> Select:
    free, rain = READING
    inside, names = chance.choice(
        (
            (READING, ("s", "f", "r")),
            ((free, Optional(group_of(rain))), ("s", "f", "r")),
            ((free, Minus(group_of(rain))), ("s", "f")),
            ((free, Exists(group_of(rain), is_negated=True)), ("s", "f")),
            ((free, Exists(group_of(pattern("t", "rain", "r")))), ("s", "f")),
            ((Union((group_of(free), group_of(pattern("s", "rain", "f")))),), ("s", "f")),
            ((*READING, Bind(Arithmetic("+", F, R), "x")), ("s", "x")),
            ((free, pattern("t", "free", "r")), ("s", "t", "f", "r")),
            ((free, _counted(chance)), ("s", "f", "n")),
        )
    )
    where = _block(*inside)
    if is_so(chance, 0.2):
        where = Group((*where.elements, Window(ex("w"), group_of(pattern("s", "rain", "z")))))
        names = (*names, "z")
    shown: tuple[str | Named, ...] = names
    if is_so(chance, 0.2):
        shown = (Named(Aggregate("COUNT"), "count"),)
    return Select(shown, where, distinct=is_so(chance, 0.1))


def _counted(chance: Random) -> SubSelect:
    """Draw a sub-query that counts what the element holds."""
    inner = group_of(pattern("x", "rain", "y"))
    if is_so(chance, 0.5):
        return SubSelect(Select((Named(Aggregate("COUNT"), "n"),), inner))
    largest = Named(Aggregate("MAX", Var("y")), "n")
    few = Comparison("<", Call("STRLEN", (Call("STR", (largest.expression,)),)), number("3"))
    return SubSelect(Select((largest,), inner, having=(few,)))
