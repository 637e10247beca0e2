"""Rankings over a stream and remote data that do not change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tests.differential.evaluation import Case
from tests.differential.expressions import (
    Aggregate,
    Arithmetic,
    Comparison,
    Expression,
    Var,
)
from tests.differential.families.drawing import (
    CONSTANTS,
    S,
    V,
    condition,
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
from tests.differential.families.elements import READING, readings
from tests.differential.patterns import Filter, Pattern, Service, Window, group_of
from tests.differential.queries import Named, Select
from tests.differential.terms import Term, Triple, ex

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

F = Var("f")
REMOTE = Service(ex("svc"), group_of(pattern("s", "has", "f")))
OPTIONS: tuple[Mapping[str, Any], ...] = (
    {"policy": "EXACT"},
    {"policy": "EXACT"},
    {"policy": "EXACT", "replica": "cache"},
    {"policy": "AT-TSM", "budget": 100},
    {"policy": "AT-BSM", "budget": 100, "n": 2},
    {"policy": "WSJ-LRU", "budget": 100},
    {"policy": "WST"},
)


def draw(chance: Random, seed: int) -> Case:
    chosen = setting(chance, (time_window(chance),), r2s="RSTREAM")
    at = times(chance, chosen, chance.randint(1, 14))
    pools = ("few", "integers", "decimals", "large", "doubles", "special", "texts", "iris")
    names = chance.choice((pools[:3], pools[:4], pools))
    shape = chance.choice((_ranked, _ranked, _ranked, _grouped, _unranked, _of_readings))
    select, arrivals = shape(chance)
    is_of_readings = shape is _of_readings
    found = triples(chance, pool(chance, names), ("p",))
    return Case(
        "service",
        seed,
        select,
        chosen,
        {"s": [readings(chance, at) if is_of_readings else elements(chance, at, found)]},
        {ex("svc"): _remote(chance, pool(chance, names), "bhk" if is_of_readings else "abcd")},
        match="element" if is_of_readings else "window",
        arrivals=arrivals,
        options=chance.choice(OPTIONS),
    )


def _remote(chance: Random, values: tuple[Term, ...], subjects: str) -> frozenset[Triple]:
    """Draw one value for most subjects, several for some, and none for the others."""
    most = chance.choice((1, 1, 3))
    return frozenset(
        (ex(subject), ex("has"), chance.choice(values))
        for subject in subjects
        if is_so(chance, 0.85)
        for _ in range(chance.randint(1, most))
    )


Drawn = tuple[Select, Literal["latest", "all"] | None]


def _score(chance: Random, value: Expression = V) -> Expression:
    joined = Arithmetic(chance.choice("+-*/"), *chance.sample((value, F), 2))
    other = chance.choice(CONSTANTS)
    return chance.choice(
        (
            joined,
            joined,
            joined,
            Arithmetic("+", Arithmetic("*", value, other), F),
            Arithmetic("-", F, Arithmetic("*", other, value)),
            Arithmetic("+", Arithmetic("/", value, number("100")), Arithmetic("/", F, other)),
            value,
            F,
        )
    )


def _arrivals(chance: Random) -> Literal["latest", "all"] | None:
    return chance.choice((None, None, "latest", "all"))


def _query(chance: Random, block: Window, value: Expression, shown: tuple[str, ...]) -> Select:
    outside: list[Pattern] = []
    if is_so(chance, 0.15):
        outside.append(condition(chance, V if value == V else value, S))  # type: ignore[arg-type]
    if is_so(chance, 0.15):
        outside.append(Filter(Comparison(">", F, number("1"))))
    by = _score(chance, value)
    named: tuple[str | Named, ...] = ()
    if is_so(chance, 0.6):
        named, by = (Named(by, "score"),), Var("score")
    conditions = [order(chance, by)]
    if is_so(chance, 0.15):
        conditions.append(order(chance, chance.choice((S, F))))
    both: list[Pattern] = [block, REMOTE] if is_so(chance, 0.85) else [REMOTE, block]
    return Select(
        (*shown, *named), group_of(*both, *outside), order_by=tuple(conditions), **cut(chance)
    )


def _ranked(chance: Random) -> Drawn:
    filters = [condition(chance, V, S)] if is_so(chance, 0.2) else []
    block = Window(ex("w"), group_of(pattern("s", "p", "v"), *filters))
    shown = chance.choice((("s", "v", "f"), ("s", "f"), ("s",)))
    return _query(chance, block, V, shown), _arrivals(chance)


def _of_readings(chance: Random) -> Drawn:
    """A solution of several patterns, which come in one element."""
    _free, rain = READING
    block = Window(ex("w"), group_of(pattern("s", "free", "v"), rain))
    return _query(chance, block, V, ("s", "v", "r")), _arrivals(chance)


def _grouped(chance: Random) -> Drawn:
    value = Aggregate(chance.choice(("COUNT", "SUM", "MAX", "AVG")), V)
    by = _score(chance, value)
    where = group_of(Window(ex("w"), group_of(pattern("s", "p", "v"))), REMOTE)
    select = Select(
        ("s", "f", Named(value, "n"), Named(by, "score")),
        where,
        group_by=("s", "f"),
        order_by=(order(chance, chance.choice((by, Var("score")))),),
        **cut(chance),
    )
    return select, None


def _unranked(chance: Random) -> Drawn:
    block = Window(ex("w"), group_of(pattern("s", "p", "v")))
    more = [Filter(Comparison("<", V, F))] if is_so(chance, 0.4) else []
    return Select(("s", "v", "f"), group_of(block, REMOTE, *more)), None
