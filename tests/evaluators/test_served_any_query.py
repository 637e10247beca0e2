"""Queries with SERVICE that are drawn at random, against remote data joined naively."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.errors import QueryError
from tests.evaluators.served_shapes import OTHER, SERVICE, Shape, naive_answer
from tests.evaluators.test_served import bind, content, rows_of, store
from tests.thoroughness import examples

if TYPE_CHECKING:
    from random import Random

STREAMED, REMOTE = ("likes", "likes", "mentions"), ("followers", "knows", "name")
SELECTED = ("*", "?u ?k", "?u ?f", "DISTINCT ?u ?k", "?u (COUNT(?k) AS ?l)")


# Values that fit their variables most of the time, so that most joins find something.
VALUES = {"likes": "kkul", "mentions": "nnf", "followers": "ffn", "knows": "kkul", "name": "mmn"}


def pattern(chance: Random, properties: tuple[str, ...]) -> str:
    name = chance.choice(properties)
    return f"?{chance.choice('uuuk')} :{name} ?{chance.choice(VALUES[name])}"


def condition(chance: Random, depth: int) -> str:
    if depth > 0 and chance.random() < 0.25:
        return f"{chance.choice(['EXISTS', 'NOT EXISTS'])} {group(chance, depth - 1)}"
    number, one, other = chance.choice("nfm"), chance.choice("ukfml"), chance.choice("unf")
    return chance.choice(
        [f"?{number} > 1", f"BOUND(?{one})", f"!BOUND(?{one})", f"?{one} != ?{other}"]
    )


def service(chance: Random) -> str:
    body = pattern(chance, REMOTE)
    if chance.random() < 0.3:
        body += f" OPTIONAL {{ {pattern(chance, REMOTE)} }}"
    if chance.random() < 0.2:
        body += f" FILTER ({condition(chance, 0)})"
    return f"SERVICE {chance.choice([':svc', ':other'])} {{ {body} }}"


def nested(chance: Random, depth: int) -> str:
    """Draw an element that holds a group."""
    inner, other = group(chance, depth), group(chance, depth)
    items = chance.choice(SELECTED)
    tail = " GROUP BY ?u" if "COUNT" in items else chance.choice(["", "", " LIMIT 0"])
    return chance.choice(
        [
            f"OPTIONAL {inner}",
            f"OPTIONAL {inner}",
            f"MINUS {inner}",
            f"{inner} UNION {other}",
            inner,
            f"WINDOW :w {inner}",
            f"{{ SELECT {items} WHERE {inner}{tail} }}",
        ]
    )


def element(chance: Random, depth: int) -> str:
    kind = chance.random()
    if depth > 0 and kind < 0.3:
        return nested(chance, depth - 1)
    if kind < 0.45:
        return f"FILTER ({condition(chance, depth)})"
    if kind < 0.7:
        return f"WINDOW :w {{ {pattern(chance, STREAMED)} }}"
    return service(chance)


def group(chance: Random, depth: int) -> str:
    return f"{{ {' '.join(element(chance, depth) for _ in range(chance.randint(1, 3)))} }}"


def facts(chance: Random, properties: tuple[str, ...], most: int) -> str:
    numbers = {"followers", "mentions", "name"}
    found = []
    for _ in range(most):
        name = chance.choice(properties)
        value = chance.randint(1, 3) if name in numbers else f":{chance.choice('abc')}"
        found.append(f":{chance.choice('abc')} :{name} {value} .")
    return " ".join(found)


@pytest.mark.parametrize(
    "options",
    [{"policy": "WST"}, {"policy": "EXACT", "replica": "cache"}],
    ids=["from a snapshot", "key by key"],
)
@examples(60)
@given(chance=st.randoms(use_true_random=True))
def test_any_query_answers_as_if_remote_data_were_local(options, chance):
    """Key by key nothing is known but what is fetched: an overlooked key is a wrong answer."""
    where = group(chance, 2)[1:-1]
    assume("SERVICE" in where)
    shape = Shape("any", where, "()")
    remote = {name: store(facts(chance, REMOTE, 9)) for name in (SERVICE, OTHER)}
    stream = [(time, facts(chance, STREAMED, 4)) for time in (1, 7_001, 14_001)]
    engine = Engine(operator="general", **options)
    for name, data in remote.items():
        if name.rpartition("/")[2] in where:
            engine.service(name, data)
    try:
        engine.register(shape.text)
    except QueryError:  # a variable of SELECT or a blank node is not new, say
        assume(False)
    bind(engine, stream)
    for answer in engine.run():
        if answer.stats["exact"] or options["policy"] == "WST":
            assert rows_of(answer) == naive_answer(shape, content(stream, answer), remote)
