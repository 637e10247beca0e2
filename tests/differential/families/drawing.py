"""What families draw from: terms, windows, streams and parts of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tests.differential.expressions import (
    Arithmetic,
    Call,
    Comparison,
    Constant,
    Expression,
    Logic,
    Minus,
    Var,
)
from tests.differential.patterns import Filter, TriplePattern
from tests.differential.queries import Order
from tests.differential.terms import Iri, Literal, Term, Triple, ex, tagged, typed
from tests.differential.windows import Count, Element, Setting, Time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random


T = TypeVar("T")


def _all(kind: str, texts: str) -> tuple[Literal, ...]:
    return tuple(typed(text, kind) for text in texts.split())


POOLS: Mapping[str, tuple[Term, ...]] = {
    "few": _all("integer", "1 2 3"),
    "integers": _all("integer", "0 1 2 3 5 8 -4 01"),
    "large": _all(
        "integer",
        "4000000000 3037000499 3037000500 9007199254740991 9007199254740992 9007199254740993"
        " 9007199254740994 9223372036854775807 9223372036854775808 -4000000000",
    ),
    "decimals": _all("decimal", "0.1 0.2 0.3 1.0 2.5 -0.7 3.25 100000000000.5 0.000001"),
    "long": _all(
        "decimal", "9007199254740993.0 9007199254740992.5 0.300000000000000001 0.3 1.000000000001"
    ),
    "doubles": _all("double", "0.1 0.2 0.3 0.30000000000000004 1 2.5 -3 0 -0.0 1e300 1e-7"),
    "special": _all("double", "NaN INF -INF 0.5"),
    "floats": _all("float", "0.1 1.5 2.5 NaN"),
    "texts": (*_all("string", "Anna Bert Carl anna 10 9 Ärger zoë"), Literal(""), Literal('a "b"')),
    "languages": tuple(
        tagged(text, tag)
        for text, tag in (("Anna", "en"), ("Anna", "de"), ("Bert", "en"), ("a", "fr"))
    ),
    "iris": (ex("a"), ex("b"), ex("Z"), ex("p/q"), Iri("urn:x")),
    "dates": _all("date", "2024-01-01 2024-01-01Z 2024-01-02+05:00 2023-12-31-03:00 2024-02-29"),
    "moments": _all(
        "dateTime",
        "2024-01-01T00:00:00 2024-01-01T00:00:00Z 2024-01-01T05:00:00+05:00 2024-01-01T00:00:00.5Z"
        " 2023-06-01T12:30:00 2024-01-01T00:00:00.500Z",
    ),
    "times": _all("time", "10:00:00 10:00:00Z 11:00:00+02:00 23:59:59.9"),
    "durations": (
        *_all("dayTimeDuration", "PT1S P1D PT24H -PT5M"),
        *_all("yearMonthDuration", "P1M P1Y"),
    ),
    "booleans": _all("boolean", "true false 1"),
    "odd": (
        *_all("integer", "x"),
        *_all("date", "2021-02-30"),
        *_all("boolean", "TRUE"),
        *_all("gYear", "2020 2021"),
        Literal("x", "urn:t"),
        Literal("y", "urn:t"),
    ),
}
NUMBERS = ("few", "integers", "large", "decimals", "long", "doubles", "special", "floats")
CALCULABLE = (*NUMBERS, "texts", "languages", "iris", "booleans", "odd")
"""Pools of which SPARQL says what arithmetic gives: with numbers a number, else an error."""


def pool(chance: Random, names: Sequence[str]) -> tuple[Term, ...]:
    """Draw the values of a stream: of one kind, of a few kinds, or of all."""
    kinds = chance.choice((1, 1, 1, 1, 2, 2, 3, len(names)))
    found = [term for name in chance.sample(names, min(kinds, len(names))) for term in POOLS[name]]
    size = chance.choice((2, 4, 8, len(found)))
    return tuple(chance.sample(found, min(size, len(found))))


def is_so(chance: Random, share: float) -> bool:
    return chance.random() < share


# Windows and streams

SIZES = (1, 2, 3, 4, 5, 6, 8)


def time_window(chance: Random, name: str = "w", stream: str = "s") -> Time:
    """Draw a window over time: mostly one that overlaps the next."""
    size = chance.choice(SIZES)
    step = (
        chance.choice(SIZES)
        if is_so(chance, 0.3)
        else chance.choice([n for n in SIZES if n <= size])
    )
    return Time(name, stream, size, step)


def count_window(chance: Random, name: str = "w", stream: str = "s", *, of_triples: bool) -> Count:
    unit = chance.choice(("ELEMENTS", "TRIPLES")) if of_triples else "ELEMENTS"
    return Count(name, stream, chance.randint(1, 5), chance.randint(1, 4), unit)  # type: ignore[arg-type]


def setting(chance: Random, windows: tuple[Time | Count, ...] = (), **given: Any) -> Setting:
    """Draw windows and their options: the usual ones more often than the others."""
    drawn: dict[str, Any] = {
        "t0": chance.choice((0, 0, 0, -3, 2, 5)),
        "bounds": chance.choice(("(]", "(]", "[)")),
        "report": chance.choice(("nonempty", "nonempty", "every")),
        "r2s": chance.choice(("RSTREAM", "RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM")),
    }
    return Setting(windows or (time_window(chance),), **{**drawn, **given})


def times(chance: Random, chosen: Setting, count: int) -> list[int]:
    """Draw so many instants at the edges of windows and beside them, in order."""
    edges = {
        edge + beside
        for window in chosen.windows
        if isinstance(window, Time)
        for index in (0, 1, 2, 3, 5)
        for edge in chosen.edges(window, index)
        for beside in (-1, 0, 1)
    }
    # N-Quads has no times before 1970: such a stream can be read from memory only.
    least = min(edges, default=0) if is_so(chance, 0.1) else 0
    near = sorted(edge for edge in edges if edge >= least) or list(range(12))
    return sorted(chance.choices(near, k=count))


def elements(
    chance: Random, instants: Sequence[int], triples: Sequence[Triple], most: int = 3
) -> list[Element]:
    """Draw an element at each instant, of triples that come again and again."""
    return [
        Element(at, frozenset(chance.choices(triples, k=chance.randint(1, most))))
        for at in instants
    ]


def sources(chance: Random, found: Sequence[Element]) -> list[list[Element]]:
    """Draw how a stream is split over sources: mostly it is one."""
    parts = chance.choice((1, 1, 1, 2, 3))
    places = [chance.randrange(parts) for _ in found]
    return [[e for e, at in zip(found, places, strict=True) if at == part] for part in range(parts)]


def triples(
    chance: Random,
    values: Sequence[Term],
    predicates: Sequence[str] = ("p",),
    subjects: str = "abcd",
    count: int = 12,
) -> list[Triple]:
    """Draw triples of a few subjects."""
    return [
        (ex(chance.choice(subjects)), ex(chance.choice(predicates)), chance.choice(values))
        for _ in range(count)
    ]


# Parts of queries

S, V, U = Var("s"), Var("v"), Var("u")


def number(text: str, kind: str = "integer") -> Constant:
    return Constant(typed(text, kind))


CONSTANTS = (
    number("1"),
    number("2"),
    number("3"),
    number("0"),
    number("4000000000"),
    number("0.1", "decimal"),
    number("0.2", "decimal"),
    number("2.5", "decimal"),
    number("0.5", "double"),
)


def pattern(subject: str, predicate: str | Var, thing: str) -> TriplePattern:
    verb = predicate if isinstance(predicate, Var) else ex(predicate)
    return TriplePattern(Var(subject), verb, Var(thing))


def arithmetic(chance: Random, names: Sequence[str], depth: int = 2) -> Expression:
    """Draw sums, differences, products and quotients of variables and constants."""
    if depth == 0 or is_so(chance, 0.2):
        is_constant = is_so(chance, 0.3)
        return chance.choice(CONSTANTS) if is_constant else Var(chance.choice(names))
    kind = chance.randrange(8)
    if kind == 0:
        return Call("ABS", (arithmetic(chance, names, depth - 1),))
    if kind == 1:
        return Minus(arithmetic(chance, names, depth - 1))
    operands = [arithmetic(chance, names, depth - 1) for _ in range(2)]
    return Arithmetic(chance.choice("+-*/"), *operands)


def score(chance: Random, names: Sequence[str]) -> Expression:
    """Draw what a query ranks by: with a variable in it."""
    found = arithmetic(chance, names, chance.choice((1, 1, 2)))
    return found if _has_variable(found) else Arithmetic("+", found, Var(chance.choice(names)))


def _has_variable(expression: Expression) -> bool:
    match expression:
        case Var():
            return True
        case Arithmetic(_, left, right):
            return _has_variable(left) or _has_variable(right)
        case Minus(operand) | Call(_, (operand, *_)):
            return _has_variable(operand)
        case _:
            return False


def of_term(chance: Random, variable: Var, other: Var) -> Expression:
    """Draw an expression over a term of any kind."""
    is_large = Comparison(">", variable, number("2"))
    return chance.choice(
        (
            variable,
            variable,
            variable,
            Call("STR", (variable,)),
            Call("UCASE", (variable,)),
            Call("LCASE", (Call("STR", (variable,)),)),
            Call("STRLEN", (Call("STR", (variable,)),)),
            Call("STR", (Call("DATATYPE", (variable,)),)),
            Call("LANG", (variable,)),
            Call("IF", (is_large, variable, number("0"))),
            Call("IF", (Call("isNumeric", (variable,)), variable, number("2"))),
            Call("COALESCE", (Arithmetic("+", variable, number("1")), other)),
            Call("COALESCE", (Call("UCASE", (variable,)), variable)),
            other,
        )
    )


def condition(chance: Random, variable: Var, subject: Var) -> Filter:
    """Draw a filter on a variable that may have any value, or on the subject."""
    limit = chance.choice((number("2"), number("0.3", "decimal"), Constant(Literal("Bert"))))
    compared = Comparison(chance.choice(("<", ">", "<=", ">=", "=", "!=")), variable, limit)
    return Filter(
        chance.choice(
            (
                compared,
                compared,
                Call("isNumeric", (variable,)),
                Call("isLiteral", (variable,)),
                Comparison("!=", subject, Constant(ex("a"))),
                Logic("||", compared, Comparison("=", subject, Constant(ex("b")))),
                Logic("&&", Comparison("!=", subject, Constant(ex("c"))), compared),
            )
        )
    )


def order(chance: Random, expression: Expression) -> Order:
    return Order(expression, descending=is_so(chance, 0.5))


def cut(chance: Random) -> dict[str, Any]:
    """Draw LIMIT and OFFSET."""
    return {"limit": chance.choice((1, 2, 2, 3, 5)), "offset": chance.choice((0, 0, 0, 0, 1, 2))}
