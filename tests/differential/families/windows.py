"""Windows of every kind, alone and together, read by queries that do not rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.differential.evaluation import Case
from tests.differential.expressions import (
    Aggregate,
    Arithmetic,
    Call,
    Comparison,
    Constant,
    Logic,
    Not,
    Var,
)
from tests.differential.families.drawing import (
    POOLS,
    S,
    V,
    count_window,
    is_so,
    number,
    pattern,
    setting,
    sources,
    time_window,
    times,
)
from tests.differential.patterns import (
    Bind,
    Exists,
    Filter,
    Group,
    Minus,
    Optional,
    Pattern,
    Union,
    Window,
    group_of,
)
from tests.differential.queries import Named, Select
from tests.differential.terms import Blank, Term, Triple, ex, typed
from tests.differential.windows import Count, Element, Setting, Time

if TYPE_CHECKING:
    from random import Random

OBJECTS: tuple[Term, ...] = (
    ex("a"),
    ex("b"),
    *POOLS["few"],
    typed("0.5", "decimal"),
    typed("2.5", "decimal"),
    typed("1.5", "double"),
)
NEXT = pattern("s", "q", "o")
CLAUSES: tuple[Pattern | None, ...] = (
    None,
    None,
    Filter(Comparison(">", V, number("1"))),
    Filter(Logic("||", Comparison("=", S, Constant(ex("a"))), Comparison("<=", V, number("2")))),
    Optional(group_of(NEXT)),
    Optional(
        group_of(
            NEXT,
            Filter(
                Logic(
                    "&&",
                    Call("isNumeric", (Var("o"),)),
                    Logic("&&", Call("isNumeric", (V,)), Comparison(">=", Var("o"), V)),
                )
            ),
        )
    ),
    Union((group_of(NEXT), group_of(pattern("o", "p", "v")))),
    Minus(group_of(pattern("s", "q", "v"))),
    Exists(group_of(pattern("s", "q", "v")), is_negated=True),
    Bind(Arithmetic("+", V, number("1")), "o"),
)
PATTERNS = (
    (pattern("s", "p", "v"),),
    (pattern("s", Var("k"), "v"),),
    (pattern("s", "p", "v"), pattern("s", "q", "u")),
    (pattern("s", "p", "v"), pattern("v", "q", "u")),
)
UNBOUND = Filter(Not(Call("BOUND", (Var("o"),))))


def draw(chance: Random, seed: int) -> Case:
    chosen = chance.choice((_one, _one, _two, _counted, _both))(chance)
    is_alone = len(chosen.windows) == 1
    select = one_window(chance) if is_alone else _two_windows(chance, chosen.windows[1].name)
    # Two blank nodes have an order that only the engine knows: nothing must depend on it.
    has_nodes = select.limit is None and all(isinstance(w, Time) for w in chosen.windows)
    streams = {
        name: sources(chance, stream(chance, chosen, name, has_nodes=has_nodes))
        for name in dict.fromkeys(window.stream for window in chosen.windows)
    }
    return Case("windows", seed, select, chosen, streams)


def _one(chance: Random) -> Setting:
    return setting(chance, (Time("w", "s", chance.randint(1, 8), chance.randint(1, 8)),))


def _two(chance: Random) -> Setting:
    return setting(chance, (time_window(chance), time_window(chance, "x", chance.choice("st"))))


def _counted(chance: Random) -> Setting:
    return setting(chance, (count_window(chance, of_triples=True),))


def _both(chance: Random) -> Setting:
    windows: list[Time | Count] = [time_window(chance), count_window(chance, "x", of_triples=True)]
    return setting(chance, tuple(windows))


def stream(chance: Random, chosen: Setting, name: str, *, has_nodes: bool) -> list[Element]:
    """Draw elements in the order of time; each has its own blank node, if it has one."""

    def triple(number: int) -> Triple:
        subjects: list[Term] = [ex("a"), ex("b"), ex("c")]
        if has_nodes:
            subjects.append(Blank(f"{name}{number}"))
        return chance.choice(subjects), ex(chance.choice("pq")), chance.choice(OBJECTS)

    least = 0 if is_so(chance, 0.15) else 1
    return [
        Element(at, frozenset(triple(number) for _ in range(chance.randint(least, 4))))
        for number, at in enumerate(times(chance, chosen, chance.randint(0, 12)))
    ]


def one_window(chance: Random) -> Select:
    inside: tuple[Pattern, ...] = chance.choice(PATTERNS)
    clause = chance.choice(CLAUSES)
    inside = inside if clause is None else (*inside, clause)
    if isinstance(clause, Optional) and is_so(chance, 0.3):
        inside = (*inside, UNBOUND)
    if is_so(chance, 0.2):
        inside = (*inside, Filter(Call("isNumeric", (V,))))
    return _answer(chance, group_of(Window(ex("w"), Group(inside))))


def _answer(chance: Random, where: Group) -> Select:
    function = chance.choice(("SUM", "MIN", "MAX", "AVG", "COUNT"))
    count = Named(Aggregate("COUNT", V), "n")
    unlike = Named(Aggregate("COUNT", V, distinct=True), "n")
    several = Comparison(">", Aggregate("COUNT", V), number("1"))
    return chance.choice(
        (
            Select(("k", "o", "s", "u", "v"), where, is_star=True),
            Select(("s",), where),
            Select(("o",), where),
            Select(("v",), where, distinct=True),
            Select((Named(Aggregate("COUNT"), "n"),), where),
            Select(("s", count), where, group_by=("s",)),
            Select(("s", unlike), where, group_by=("s",), having=(several,)),
            Select(("s", Named(Aggregate(function, V), "n")), where, group_by=("s",)),
            Select(("s", "v"), where, limit=chance.randint(1, 4), offset=chance.randint(0, 2)),
        )
    )


def _two_windows(chance: Random, other: str) -> Select:
    first = Window(ex("w"), group_of(pattern("s", "p", "v")))
    second = Window(ex(other), group_of(pattern("s", "q", "u")))
    same = Window(ex(other), group_of(pattern("s", "p", "v")))
    where = chance.choice(
        (
            group_of(first, second),
            group_of(first, Window(ex(other), group_of(pattern("t", "p", "v")))),
            group_of(first, Optional(group_of(second))),
            group_of(Union((group_of(first), group_of(same)))),
            group_of(first, Minus(group_of(same))),
            group_of(first, Exists(group_of(second), is_negated=True)),
            group_of(Window(Var("g"), group_of(pattern("s", "p", "v")))),
            group_of(Window(Var("g"), group_of(pattern("s", Var("k"), "v"))), second),
        )
    )
    if is_so(chance, 0.5):
        return Select(("g", "k", "s", "t", "u", "v"), where, is_star=True)
    return Select(chance.choice((("s", "v", "u"), ("s",), ("g", "s", "v"))), where)
