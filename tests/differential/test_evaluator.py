"""The evaluator, by examples that were worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.evaluation import Case, answers, aside, halves_of
from tests.differential.expressions import (
    Aggregate,
    Arithmetic,
    Call,
    Comparison,
    Constant,
    Expression,
    Var,
    value,
)
from tests.differential.families.drawing import number, pattern
from tests.differential.order import place
from tests.differential.patterns import (
    Filter,
    Group,
    Minus,
    Pattern,
    Service,
    SubSelect,
    Window,
    group_of,
)
from tests.differential.queries import Named, Order, Select
from tests.differential.terms import (
    Blank,
    Iri,
    Literal,
    Term,
    Triple,
    ex,
    tagged,
    typed,
    written,
)
from tests.differential.windows import Count, Element, Setting, Time

S, V, F, R = Var("s"), Var("v"), Var("f"), Var("r")
ONE = (Time("w", "s", 10, 10),)


def i(value: int | str) -> Literal:
    return typed(str(value), "integer")


def d(text: str) -> Literal:
    return typed(text, "decimal")


def e(text: str) -> Literal:
    return typed(text, "double")


def element(timestamp: int, *triples: tuple[str, str, Term | int | str]) -> Element:
    return Element(timestamp, frozenset(_triple(*triple) for triple in triples))


def _triple(subject: str, predicate: str, thing: Term | int | str) -> Triple:
    if isinstance(thing, int):
        thing = i(thing)
    return ex(subject), ex(predicate), Literal(thing) if isinstance(thing, str) else thing


def block(*inside: Pattern, name: str = "w") -> Group:
    return group_of(Window(ex(name), Group(inside)))


def case(
    select: Select, *stream: Element, windows: tuple[Time | Count, ...] = ONE, **more: Any
) -> Case:
    setting = {n: more.pop(n) for n in ("max_delay", "r2s", "report", "bounds") if n in more}
    return Case("by hand", 0, select, Setting(windows, **setting), {"s": [stream]}, **more)


def shown(made: Case) -> list[str]:
    """Return each answer as text: the short forms of its terms, row by row."""
    return [
        " | ".join(" ".join(map(short, r.bindings.values())) for r in a.rows) for a in answers(made)
    ]


def short(term: Term) -> str:
    match term:
        case Iri(value):
            return value.removeprefix("http://example.org/")
        case Literal(text):
            return text
        case Blank(label):
            return f"_:{label}"


def ranked(by: Expression, *shown: str, limit: int = 5, descending: bool = False) -> Select:
    where = block(pattern("s", "p", "v"))
    return Select(shown or ("s", "v"), where, order_by=(Order(by, descending),), limit=limit)


# The order of terms

ASCENDING: list[list[Term | None]] = [
    [None],
    [Blank("a")],
    [Blank("b")],
    [Iri("http://example.org/Z")],
    [Iri("http://example.org/a")],
    [Iri("urn:x")],
    [e("NaN"), typed("NaN", "float")],
    [e("-INF")],
    [i(-4), d("-4.0")],
    [e("-0.0"), e("0"), i(0), d("0.0")],
    [d("0.1"), e("0.1")],
    [typed("0.1", "float"), d("0.10000000149011612")],
    [i(1), d("1.0"), i("01"), e("1e0"), typed("1", "byte")],
    [i(9007199254740992), e("9007199254740992")],
    [i(9007199254740993), d("9007199254740993")],
    [i(9223372036854775807)],
    [e("INF")],
    [typed("false", "boolean")],
    [typed("true", "boolean"), typed("1", "boolean")],
    [typed("2024-01-01+05:00", "date")],
    [typed("2024-01-01", "date"), typed("2024-01-01Z", "date")],
    [typed("2024-01-01T00:00:00", "dateTime"), typed("2024-01-01T05:00:00+05:00", "dateTime")],
    [typed("2024-01-01T00:00:00.5Z", "dateTime")],
    [typed("PT1S", "dayTimeDuration"), typed("PT1S", "duration")],
    [typed("P30D", "dayTimeDuration")],
    [typed("P1M", "yearMonthDuration")],
    [Literal("")],
    [Literal("Anna")],
    [tagged("Anna", "de")],
    [tagged("Anna", "en")],
    [Literal("Bert")],
    [Literal("anna")],
    [typed("10:00:00", "time"), typed("12:00:00+02:00", "time")],
    [typed("2021-02-30", "date")],
    [typed("9223372036854775808", "integer")],
    [typed("x", "integer")],
    [Literal("a", "urn:t")],
    [Literal("b", "urn:t")],
]


def test_terms_have_one_order():
    places = [{place(term) for term in tied} for tied in ASCENDING]
    assert [len(tied) for tied in places] == [1] * len(places), "terms of one line tie"
    flat = [tied.pop() for tied in places]
    assert flat == sorted(flat)
    assert len(set(flat)) == len(flat)


def test_a_ranking_by_text_goes_up_and_down():
    stream = [
        element(1, ("a", "p", "Anna")),
        element(2, ("b", "p", "Bert")),
        element(3, ("c", "p", "Carl")),
    ]
    assert shown(case(ranked(V, limit=2), *stream)) == ["a Anna | b Bert"]
    assert shown(case(ranked(V, limit=2, descending=True), *stream)) == ["c Carl | b Bert"]


def test_a_product_that_overflows_is_unbound():
    """The square of 4000000000 is more than 2**63: an error, which is unbound."""
    stream = [element(1, ("a", "p", 4000000000)), element(2, ("b", "p", 3))]
    squared = Arithmetic("*", V, V)
    assert shown(case(ranked(squared), *stream)) == ["a 4000000000 | b 3"]
    assert shown(case(ranked(squared, descending=True), *stream)) == ["b 3 | a 4000000000"]


def test_an_infinite_number_is_less_than_a_text():
    stream = [element(1, ("a", "p", "x")), element(2, ("b", "p", e("-INF")))]
    assert shown(case(ranked(V), *stream)) == ["b -INF | a x"]


# Ties


def test_sums_of_decimals_tie_and_the_later_one_is_first():
    stream = [element(1, ("a", "p", d("0.2"))), element(2, ("b", "p", d("0.20")))]
    assert shown(case(ranked(Arithmetic("+", V, number("0.1", "decimal"))), *stream)) == [
        "b 0.2 | a 0.2"
    ]


def test_of_one_time_the_larger_solution_is_first():
    stream = [element(1, ("a", "p", 1), ("b", "p", 1))]
    assert shown(case(ranked(V), *stream)) == ["b 1 | a 1"]
    unlimited = Select(("s", "v"), block(pattern("s", "p", "v")), order_by=(Order(V),))
    assert shown(case(unlimited, *stream)) == ["a 1 | b 1"], "an order without LIMIT does not rank"


@pytest.mark.parametrize("max_delay", [0, 2])
def test_event_time_decides_and_not_arrival(max_delay):
    """(2,6] holds kB at 4, kC at 5 and kA at 3, which comes last."""
    stream = [element(4, ("kB", "p", 5)), element(5, ("kC", "p", 1)), element(3, ("kA", "p", 5))]
    made = case(
        ranked(V, "s", limit=1, descending=True),
        *stream,
        windows=(Time("w", "s", 4, 2),),
        max_delay=max_delay,
    )
    found = {(a.open, a.close): short(a.rows[0].bindings["s"]) for a in answers(made)}
    assert found[2, 6] == "kB"


def test_solutions_of_several_patterns_tie_by_their_terms_unless_each_is_of_one_element():
    stream = [element(1, ("a", "p", 1), ("a", "q", 1)), element(2, ("b", "p", 1), ("b", "q", 1))]
    both = block(pattern("s", "p", "v"), pattern("s", "q", "u"))
    select = Select(("s",), both, order_by=(Order(V, descending=True),), limit=2)
    assert shown(case(select, *stream)) == ["a | b"]
    assert shown(case(select, *stream, match="element")) == ["b | a"]


# Groups


LARGEST = 2**63 - 1


def grouped(aggregate: Aggregate, **more: Any) -> Select:
    where = block(pattern("s", "p", "v"))
    return Select(("s", Named(aggregate, "n")), where, group_by=("s",), **more)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("SUM", ["0.1 decimal", "0.2 decimal"], '"0.3"^^decimal'),
        ("SUM", [f"{LARGEST} integer", "1 integer", "-1 integer"], f'"{LARGEST}"^^integer'),
        ("SUM", [f"{LARGEST} integer", "1 integer"], ""),
        ("SUM", ["1e300 double", "1 integer", "-1e300 double"], '"1"^^double'),
        ("SUM", ["0.1 double", "0.2 double", "0.3 double"], '"0.6"^^double'),
        ("SUM", ["1 integer", "x string"], ""),
        ("SUM", ["INF double", "-INF double"], '"NaN"^^double'),
        ("AVG", ["1 integer", "2 integer", "2 integer"], '"1.5"^^decimal'),
        ("AVG", [f"{LARGEST} integer", f"{LARGEST - 1} integer"], f'"{LARGEST - 1}.5"^^decimal'),
        ("AVG", ["1 integer", "0 integer", "01 decimal"], '"0.666666666666666666"^^decimal'),
        ("MIN", ["1 integer", "1.0 decimal", "1 double"], '"1"^^decimal'),
        ("MAX", ["1 integer", "1.0 decimal", "1 double"], '"1"^^integer'),
        ("MAX", ["9 integer", "abc string", "true boolean"], '"abc"'),
        ("MIN", ["9 integer", "abc string", "NaN double"], '"NaN"^^double'),
        ("COUNT", ["9 integer", "abc string"], '"2"^^integer'),
    ],
)  # fmt: skip
def test_an_aggregate_depends_on_the_values_alone(function, values, expected):
    terms = [typed(*value.rsplit(" ", 1)) for value in values]
    stream = [element(1 + n % 3, ("a", "p", term)) for n, term in enumerate(terms)]
    [answer] = answers(case(grouped(Aggregate(function, V)), *stream))
    found = written(answer.rows[0].bindings.get("n"))
    assert found.replace("<http://www.w3.org/2001/XMLSchema#", "").rstrip(">") == expected


def test_an_order_may_use_the_name_of_an_aggregate():
    stream = [
        element(1, ("a", "p", 1), ("a", "p", 2)),
        element(2, ("b", "p", 1)),
        element(3, ("c", "p", 1)),
    ]
    by = Order(Arithmetic("+", Var("n"), number("1")), descending=True)
    made = case(grouped(Aggregate("COUNT", V), order_by=(by,), limit=3), *stream)
    assert shown(made) == ["a 2 | c 1 | b 1"], "of groups that tie the later one is first"


# One element

READINGS = [("b", 8, "0.12"), ("b", 15, "0.03"), ("b", 28, "0.32"), ("h", 20, "0.38")]


def test_a_solution_comes_from_one_element():
    stream = [element(1, (s, "free", free), (s, "rain", d(rain))) for s, free, rain in READINGS]
    both = block(pattern("s", "free", "f"), pattern("s", "rain", "r"))
    select = Select(("s", "f"), both, order_by=(Order(F, descending=True),), limit=3)
    assert shown(case(select, *stream, match="element")) == ["b 28 | h 20 | b 15"]
    assert shown(case(select, *stream)) == ["b 28 | b 28 | b 28"]
    summed = Select(("s", Named(Aggregate("SUM", F), "n")), both, group_by=("s",))
    assert shown(case(summed, *stream, match="element")) == ["b 51 | h 20"]
    assert shown(case(Select(("s", "f", "r"), both), *stream, match="element")) == [
        "b 15 0.03 | b 28 0.32 | b 8 0.12 | h 20 0.38"
    ]


def test_an_element_that_comes_again_gives_its_solutions_once():
    reading = [("b", "free", 8), ("b", "rain", 1)]
    both = block(pattern("s", "free", "f"), pattern("s", "rain", "r"))
    assert shown(
        case(Select(("f",), both), element(1, *reading), element(2, *reading), match="element")
    ) == ["8"]


def test_a_sub_query_sees_its_element():
    stream = [element(1, ("a", "p", 1), ("a", "p", 2)), element(1, ("b", "p", 3))]
    counted = SubSelect(Select((Named(Aggregate("COUNT"), "n"),), group_of(pattern("x", "p", "y"))))
    select = Select(("s", "n"), block(pattern("s", "p", "v"), counted))
    assert shown(case(select, *stream, match="element")) == ["a 2 | a 2 | b 1"]


def test_the_two_objects_of_a_pair_come_from_one_element_each():
    stream = [
        element(1, ("a", "free", 1), ("a", "rain", 7)),
        element(3, ("b", "free", 5), ("b", "rain", 7)),
    ]
    pair = (
        pattern("a", "free", "x"),
        pattern("a", "rain", "k"),
        pattern("b", "free", "y"),
        pattern("b", "rain", "k"),
    )
    by = Order(Call("ABS", (Arithmetic("-", Var("x"), Var("y")),)), descending=True)
    for shared in (pair, (*pair[:3], pattern("b", "rain", "l"))):
        select = Select(("a", "b"), block(*shared), order_by=(by,), limit=2)
        assert shown(case(select, *stream, match="element")) == ["a b | b a"]
    unranked = Select(("a", "b"), block(*pair))
    assert shown(case(unranked, *stream, match="element")) == ["a a | b b"]


def test_what_a_pair_is():
    a, b = pattern("a", "p", "x"), pattern("b", "p", "y")
    assert halves_of([a, b]) == ((a,), (b,))
    assert halves_of([a, pattern("b", "q", "y")]) is not None, "no variable in common"
    assert halves_of([a, pattern("b", "p", "x")]) is not None, "alike, with one variable in common"
    assert halves_of([a, pattern("a", "q", "y")]) is None, "one object"
    assert halves_of([a, pattern("x", "p", "b")]) is None, "a chain"


# WINDOW ?w

TWO = (Time("w", "s", 10, 10), Time("x", "s", 5, 5))


def test_a_window_variable_reads_one_window_at_a_time():
    """:w holds 1 and 7, and :x holds 7 when both close at 10."""
    stream = [element(1, ("a", "p", 1)), element(7, ("b", "p", 2), ("b", "q", 3))]
    counted = SubSelect(Select((Named(Aggregate("COUNT"), "n"),), group_of(pattern("s", "p", "v"))))
    for inside, names, expected in (
        (group_of(counted), ("w", "n"), "w 2 | x 1"),
        (group_of(pattern("s", "p", "v"), Filter(Call("BOUND", (Var("w"),)))), ("w", "s"), ""),
        (
            group_of(pattern("s", "p", "v"), Minus(group_of(pattern("t", "q", "z")))),
            ("w", "s"),
            "w a | w b | x b",
        ),
    ):
        select = Select(names, group_of(Window(Var("w"), inside)))
        assert shown(case(select, *stream, windows=TWO)) == [expected]


# Arrivals


def joined(operator: str) -> Select:
    remote = Service(ex("svc"), group_of(pattern("s", "has", "f")))
    where = group_of(Window(ex("w"), group_of(pattern("s", "p", "v"))), remote)
    by = Order(Arithmetic(operator, V, F), descending=True)
    return Select(("s", "v"), where, order_by=(by,), limit=3)


@pytest.mark.parametrize("operator", ["+", "/"])
def test_the_latest_arrival_of_a_join_key_counts(operator):
    remote = {ex("svc"): frozenset({_triple("a", "has", 2), _triple("b", "has", 2)})}
    stream = [
        element(1, ("a", "p", 9)),
        element(2, ("a", "p", 4), ("b", "p", 5)),
        element(3, ("c", "p", 8)),
    ]
    assert shown(case(joined(operator), *stream, services=remote)) == ["b 5 | a 4"]
    every = case(joined(operator), *stream, services=remote, arrivals="all")
    assert shown(every) == ["a 9 | b 5 | a 4"]


def test_of_one_time_the_larger_arrival_counts():
    remote = {ex("svc"): frozenset({_triple("a", "has", 2)})}
    assert shown(case(joined("+"), element(1, ("a", "p", 5), ("a", "p", 40)), services=remote)) == [
        "a 5"
    ]


# Windows


def test_windows_that_count_hold_the_elements_from_i_m_to_i_m_plus_n_minus_1():
    stream = [element(at, ("a", "p", at)) for at in (1, 2, 3, 4, 5)]
    select = Select(("v",), block(pattern("s", "p", "v")))
    windows = (Count("w", "s", 3, 2),)
    assert shown(case(select, *stream, windows=windows)) == ["1 | 2 | 3", "3 | 4 | 5", "5"]


def test_an_element_is_late_if_all_its_windows_are_closed():
    """Windows (0,4] (2,6] and a delay of 1: 7 closes (0,4], so that 3 counts in (2,6] alone."""
    stream = [element(at, ("a", "p", at)) for at in (1, 7, 3, 2)]
    select = Select(("v",), block(pattern("s", "p", "v")))
    made = case(select, *stream, windows=(Time("w", "s", 4, 2),), max_delay=1)
    assert shown(made) == ["1", "3", "7", "7"]
    [(late, reason)] = aside(made)
    assert (reason, late) == ("late", stream[-1].lines()[0])


@pytest.mark.parametrize(
    ("r2s", "expected"),
    [
        ("RSTREAM", ["1 | 2", "2 | 3", "3"]),
        ("ISTREAM", ["1 | 2", "3", ""]),
        ("DSTREAM", ["", "1", "2"]),
    ],
)
def test_what_leaves_a_query(r2s, expected):
    stream = [element(2 * at, ("a", "p", at)) for at in (1, 2, 3)]
    select = Select(("v",), block(pattern("s", "p", "v")))
    made = case(select, *stream, windows=(Time("w", "s", 4, 2),), r2s=r2s)
    assert shown(made) == expected


def test_a_comparison_of_unlike_values_is_an_error():
    assert value(Comparison("<", Constant(i(1)), Constant(Literal("a"))), {}) is None
    assert value(Comparison("=", Constant(i(1)), Constant(Literal("a"))), {}) == typed(
        "false", "boolean"
    )
