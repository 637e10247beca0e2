"""Ranked queries with SERVICE rank by the order of terms, whatever the scores are.

The oracle is naive: of each window the latest reading of each key, joined with the remote solution
of that instant, with the term that Oxigraph gives for the written expression. It ranks by the order
of terms, then by the later reading, then by the larger text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cmp_to_key
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.model.answers import Answer, Solutions
from rsp_engine.model.terms.term_order import order_key
from rsp_engine.policies.registry import POLICIES
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint
from tests.drivers.split_runs import in_splits
from tests.thoroughness import examples

EX, XSD = "http://example.org/", "http://www.w3.org/2001/XMLSchema#"
RANGE, STEP = 4, 2
SUBJECTS = "abcd"
EXPRESSIONS = (
    "?a", "?b", "?a + ?b", "?a - ?b", "?a * ?b", "?a / ?b", "?b / ?a", "-?b", "+?a", "?a / 3",
    "?a * 0.1 + ?b", "ABS(?a - ?b)", "?a / 4 * ?b", "?a + ?b / 3",
)  # fmt: skip


def term(text: str, kind: str) -> str:
    return f'"{text}"^^<{XSD}{kind}>'


INTEGERS = [*map(str, range(-2, 4)), "4000000000", "9007199254740993", "9223372036854775807"]
DECIMALS = ["0.1", "0.2", "0.3", "-0.1", "2.0", "0.000000000000000001", "3.5"]
DOUBLES = ["0.1", "0.2", "0.30000000000000004", "1", "-0.0", "1.0E300", "NaN", "INF", "-INF"]
NUMBERS = [
    *(term(text, "integer") for text in INTEGERS),
    *(term(text, "decimal") for text in DECIMALS),
    *(term(text, "double") for text in DOUBLES),
    *(term(text, "float") for text in ("0.1", "2", "NaN")),
]
OTHERS = [
    '"Anna"', '"Bert"', '"Anna"@en', '""', f"<{EX}x>", f"<{EX}y>",
    *(term(text, "boolean") for text in ("true", "false")),
    *(term(text, "date") for text in ("2024-01-01", "2024-01-01+05:00", "2023-06-01Z")),
    *(term(text, "dateTime") for text in ("2024-01-01T00:00:00", "2023-12-31T22:00:00-02:00")),
    term("PT1M", "dayTimeDuration"), term("P1Y", "yearMonthDuration"), term("12:00:00", "time"),
    term("five", "integer"), term("2024-13-01", "date"), f'"x"^^<{EX}kind>',
]  # fmt: skip
small = st.sampled_from([term(str(number), "integer") for number in range(1, 5)])
decimals = st.sampled_from([term(text, "decimal") for text in DECIMALS[:4]])
doubles = st.sampled_from([term(text, "double") for text in DOUBLES[:4]])
numbers = st.sampled_from(NUMBERS)
terms = st.sampled_from(NUMBERS + OTHERS)
kinds = st.sampled_from((small, decimals, doubles, numbers, terms))


@dataclass(frozen=True)
class Story:
    """Readings of subjects in the order of time, and what is known of these remotely, and when."""

    readings: list[tuple[int, str, str]]
    remote: dict[str, list[tuple[int, str | None]]]
    """Of each subject values since a time: `""` is a solution without a value, None is none."""
    query: Query


@dataclass(frozen=True)
class Query:
    """A query; an aggregate replaces ?a."""

    expression: str
    descending: bool
    limit: int
    offset: int
    aggregate: str | None = None

    @property
    def text(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        expression, shown, group_by = self.expression, "?a ?b", ""
        if self.aggregate is not None:
            expression, shown = expression.replace("?a", self.aggregate), "?b"
            group_by = "GROUP BY ?s ?b"
        return f"""
        PREFIX : <{EX}>
        SELECT ?s {shown} FROM NAMED WINDOW :w ON :stream [RANGE {RANGE}s STEP {STEP}s]
        WHERE {{
          WINDOW :w {{ ?s :reads ?a }}
          SERVICE :remote {{ ?s a :Known OPTIONAL {{ ?s :has ?b }} }}
        }} {group_by}
        ORDER BY {direction}({expression}) LIMIT {self.limit} OFFSET {self.offset}"""


queries = st.builds(
    Query, st.sampled_from(EXPRESSIONS), st.booleans(), st.integers(1, 3), st.integers(0, 1)
)
large = st.sampled_from([term(text, "integer") for text in ("1", "5000000000000000000")])
halves = st.sampled_from([term(text, "double") for text in ("0.5", "1.5", "INF")])
texts = st.sampled_from(('"Anna"', '"Bert"', '"Carl"'))


@st.composite
def stories_of_groups(draw: st.DrawFn) -> Story:
    """Draw readings of one kind, of which Oxigraph makes the same aggregate in any order."""
    here = draw(st.sampled_from((small, decimals, large, halves, texts)))
    aggregate = draw(st.sampled_from(("COUNT", "SUM", "MIN", "MAX", "AVG")))
    expression = draw(st.sampled_from([text for text in EXPRESSIONS if "?a" in text]))
    query = draw(queries)
    query = replace(query, expression=expression, aggregate=f"{aggregate}(?a)")
    return replace(draw(stories(here=here)), query=query)


@st.composite
def stories(
    draw: st.DrawFn, *, is_still: bool = False, here: st.SearchStrategy[str] | None = None
) -> Story:
    here, there = draw(kinds) if here is None else here, draw(kinds)
    times = sorted(draw(st.lists(st.integers(1, 9), min_size=1, max_size=8)))
    subjects = st.sampled_from(SUBJECTS)
    readings = [(1000 * at, draw(subjects), draw(here)) for at in times]
    values = st.one_of(there, there, there, there, st.sampled_from(("", None)))
    changes = st.just([]) if is_still else st.lists(st.integers(1, 9), unique=True, max_size=2)
    remote = {
        subject: [(1000 * at, draw(values)) for at in [0, *sorted(draw(changes))]]
        for subject in SUBJECTS
    }
    return Story(readings, remote, draw(queries))


def read(text: str) -> Any:
    [triple] = ox.parse(f"<{EX}s> <{EX}p> {text} .".encode(), format=ox.RdfFormat.N_TRIPLES)
    return triple.object


def endpoint(story: Story) -> RecordedEndpoint:
    def solutions(text: str | None) -> Any:
        return () if text is None else ({"b": read(text)} if text else {},)

    return RecordedEndpoint(
        {
            (ox.NamedNode(EX + subject),): [(at, solutions(text)) for at, text in values]
            for subject, values in story.remote.items()
        }
    )


def score(query: Query, values: list[str], b: str) -> str:
    """Return the key of the term that Oxigraph gives a subject as its score."""
    pattern = f"{{ VALUES ?a {{ {' '.join(values)} }} }}"
    if query.aggregate is not None:
        pattern = f"{{ SELECT ({query.aggregate} AS ?m) {pattern} }} BIND(?m AS ?a)"
    bound = f"VALUES ?b {{ {b} }}" if b else ""
    found: Any = ox.Store().query(f"SELECT ({query.expression} AS ?x) {{ {pattern} {bound} }}")
    [solution] = found
    return order_key(solution["x"])


def expected(story: Story, close: int) -> list[str]:
    """Return the subjects of the window that closes then, best first."""
    came: dict[str, list[tuple[int, str]]] = {}
    for at, subject, value in story.readings:
        if close - 1000 * RANGE < at <= close:
            came.setdefault(subject, []).append((at, str(read(value))))
    rows = []
    for subject, arrivals in came.items():
        found = [text for since, text in story.remote[subject] if since <= close][-1]
        if found is not None:
            at, value = max(arrivals)
            is_group = story.query.aggregate is not None
            values = sorted({text for _, text in arrivals}) if is_group else [value]
            text = f"<{EX}{subject}>" if is_group else f"<{EX}{subject}>\t{value}"
            rows.append((score(story.query, values, found), at, text, subject))

    def compare(one: Any, other: Any) -> int:
        if one[0] != other[0]:
            return -1 if (one[0] > other[0]) == story.query.descending else 1
        return -1 if one[1:] > other[1:] else 1

    rows.sort(key=cmp_to_key(compare))
    first = story.query.offset
    return [row[-1] for row in rows[first : first + story.query.limit]]


def elements(story: Story) -> list[tuple[int, str]]:
    return [(at, f"<{EX}{s}> <{EX}reads> {value} .") for at, s, value in story.readings]


def run(story: Story, stream: Any = None, **options: Any) -> list[Answer]:
    engine = Engine(budget=100, **options)
    engine.service(f"{EX}remote", endpoint(story))
    engine.register(story.query.text)
    assert "no top-k operator" not in engine.explain()
    engine.bind(f"{EX}stream", elements(story) if stream is None else stream)
    return list(engine.run())


def subjects_of(answer: Answer) -> list[str]:
    assert isinstance(answer.content, Solutions)
    return [row.bindings["s"].value.removeprefix(EX) for row in answer.content.rows]


def check(story: Story, answers: list[Answer]) -> None:
    for answer in answers:
        assert subjects_of(answer) == expected(story, answer.window.close)


@examples(60)
@given(stories())
def test_what_is_fresh_is_ranked_by_the_order_of_terms(story):
    answers = run(story, policy="EXACT", oracle=True)
    check(story, answers)
    for answer in answers:
        assert answer.stats["exact"]
        assert answer.stats["ndcg"] == answer.stats["precision"] == 1.0


@examples(45)
@given(stories_of_groups())
def test_groups_are_ranked_by_the_order_of_terms(story):
    answers = run(story, policy="EXACT", oracle=True)
    check(story, answers)
    for answer in answers:
        assert answer.stats["exact"]
        assert answer.stats["ndcg"] == answer.stats["precision"] == 1.0


@pytest.mark.parametrize("policy", sorted(POLICIES))
@examples(15)
@given(stories(is_still=True), st.sampled_from((0, 1, 20)))
def test_every_policy_ranks_what_does_not_change_by_the_order_of_terms(policy, story, n):
    """The value of information may expect another order, and says that it is not exact."""
    for answer in run(story, policy=policy, n=n):
        if answer.stats["exact"] or "VOI" not in policy:
            assert subjects_of(answer) == expected(story, answer.window.close)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@examples(15)
@given(stories(), st.sampled_from((0, 1, 20)))
def test_no_policy_says_that_an_answer_is_exact_if_it_is_not(policy, story, n):
    for answer in run(story, policy=policy, n=n):
        if answer.stats["exact"]:
            event("exact")
            assert subjects_of(answer) == expected(story, answer.window.close)


@examples(40)
@given(stories(), st.sampled_from((1, 200, 100_000)), st.booleans())
def test_places_and_cuts_change_nothing(story, size, is_cut):
    """What is read elsewhere comes as text, and a run goes on from its state."""
    lines = [f"<{EX}{s}> <{EX}reads> {value} <{EX}g/{at}> .\n" for at, s, value in story.readings]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stream.nq"
        path.write_text("".join(lines), encoding="utf-8")
        with in_splits(size=size, cuts=range(1000) if is_cut else ()):
            check(story, run(story, str(path), policy="EXACT"))
