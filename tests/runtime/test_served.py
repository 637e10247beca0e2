"""General queries with SERVICE, end to end: what they answer, and what that may cost."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.model.answers import Answer, Boolean, Solutions
from tests.runtime.served_shapes import (
    EX,
    OTHER,
    SERVICE,
    SHAPES,
    Shape,
    naive_answer,
    row_text,
    triples,
)

PEOPLE = ["a", "b", "c", "d", "e"]


def engine_of(shape: Shape, remote: dict[str, ox.Store], **options: object) -> Engine:
    engine = Engine(operator="general", **options)  # type: ignore[arg-type]
    for name, data in remote.items():
        if name == SERVICE or ":other" in shape.text or "SERVICE ?x" in shape.text:
            engine.service(name, data)
    engine.register(shape.text)
    return engine


def bind(engine: Engine, stream: list[tuple[int, str]]) -> None:
    engine.bind(f"{EX}s", [(time, f"@prefix : <{EX}> . {text}") for time, text in stream])


def content(stream: list[tuple[int, str]], answer: Answer) -> list[ox.Triple]:
    """Return what the window of an answer holds: (open, close]."""
    window = answer.window
    inside = [text for time, text in stream if window.open < time <= window.close]
    return list(dict.fromkeys(triple for text in inside for triple in triples(text)))


def said(answer: Answer) -> list[str] | bool | None:
    match answer.content:
        case Boolean(value):
            return value
        case Solutions(rows=rows):
            return sorted(row_text(dict(row.bindings)) for row in rows)
        case _:
            raise AssertionError


def store(text: str) -> ox.Store:
    made = ox.Store()
    made.extend(ox.Quad(t.subject, t.predicate, t.object) for t in triples(text))
    return made


people = st.sampled_from(PEOPLE)
numbers = st.integers(1, 4)
facts = st.one_of(
    st.builds(":{} :followers {} .".format, people, numbers),
    st.builds(":{} :name '{}' .".format, people, people),
    st.builds(":{} :knows :{} .".format, people, people),
)
remotes = st.lists(facts, max_size=10).map(" ".join)
elements = st.one_of(
    st.builds(":{} :mentions {} .".format, people, numbers),
    st.builds(":{} :likes :{} .".format, people, people),
    st.builds("[] :mentions {} .".format, numbers),
)
streams = st.lists(
    st.tuples(st.integers(1, 50_000), elements), min_size=1, max_size=12, unique=True
).map(sorted)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@settings(max_examples=12, deadline=None)
@given(stream=streams, first=st.tuples(remotes, remotes), then=st.lists(remotes, max_size=3))
def test_asked_for_everything_a_query_answers_as_if_remote_data_were_local(
    shape, stream, first, then
):
    """Remote data change between one evaluation and the next."""
    remote = {SERVICE: store(first[0]), OTHER: store(first[1])}
    engine = engine_of(shape, remote, policy="EXACT")
    bind(engine, stream)
    for answer in engine.run():
        if shape.is_always_exact:
            assert answer.stats["exact"]
        if answer.stats["exact"]:
            assert said(answer) == naive_answer(shape, content(stream, answer), remote)
        if then:
            remote[SERVICE].clear()
            remote[SERVICE].extend(store(then.pop()))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@settings(max_examples=5, deadline=None)
@given(stream=streams, first=st.tuples(remotes, remotes))
def test_what_was_loaded_at_the_start_is_enough_where_nothing_changes(shape, stream, first):
    """Nothing is ever fetched, and no answer claims to be exact if it used remote data."""
    remote = {SERVICE: store(first[0]), OTHER: store(first[1])}
    engine = engine_of(shape, remote, policy="WST")
    bind(engine, stream)
    for answer in engine.run():
        assert answer.stats["budget_spent"] == answer.stats["requests"] == 0
        assert said(answer) == naive_answer(shape, content(stream, answer), remote)
