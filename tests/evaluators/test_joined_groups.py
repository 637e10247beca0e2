"""Groups joined with SERVICE rank by the order of terms, whatever aggregates and scores are.

The oracle is naive: of each window the values of each subject, each once, aggregated by the
evaluator of the differential tests, joined with the remote solution of that instant, with the term
that Oxigraph gives for the written expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.model.terms.numerals import stored_literal
from rsp_engine.policies.registry import POLICIES
from tests.differential import terms
from tests.differential.aggregates import aggregated
from tests.differential.order import place
from tests.drivers.split_runs import in_splits
from tests.evaluators.test_joined_terms import (
    EX,
    RANGE,
    STEP,
    SUBJECTS,
    Query,
    Story,
    elements,
    endpoint,
    read,
    stories,
    subjects_of,
    term,
)
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.model.answers import Answer

EXPRESSIONS = ("?a", "?a + ?b", "?a - ?b", "?a * ?b", "?a / ?b", "-?a", "?a * 35 + ?b", "?a / 3")


@dataclass(frozen=True)
class GroupQuery(Query):
    """The best groups by an aggregate, which is ?a in the expression."""

    function: str = "SUM"

    @property
    def text(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        aggregate = f"{self.function}(?v)"
        return f"""
        PREFIX : <{EX}>
        SELECT ?s ({aggregate} AS ?n) ?b
        FROM NAMED WINDOW :w ON :stream [RANGE {RANGE}s STEP {STEP}s]
        WHERE {{
          WINDOW :w {{ ?s :reads ?v }}
          SERVICE :remote {{ ?s a :Known OPTIONAL {{ ?s :has ?b }} }}
        }}
        GROUP BY ?s ?b
        ORDER BY {direction}({self.expression.replace("?a", aggregate)})
        LIMIT {self.limit} OFFSET {self.offset}"""


queries = st.builds(
    GroupQuery, st.sampled_from(EXPRESSIONS), st.booleans(), st.integers(1, 3),
    st.integers(0, 1), function=st.sampled_from(("COUNT", "SUM", "AVG", "MIN", "MAX")),
)  # fmt: skip


@st.composite
def group_stories(draw: st.DrawFn, *, is_still: bool = False) -> Story:
    story = draw(stories(is_still=is_still))
    return Story(story.readings, story.remote, draw(queries))


def as_plain(found: Any) -> terms.Term | None:
    if isinstance(found, ox.Literal):
        kept = stored_literal(found)
        return terms.Literal(kept.value, kept.datatype.value, kept.language or "")
    return None if found is None else terms.Iri(found.value)


def scored(expression: str, value: terms.Term | None, remote: str) -> terms.Term | None:
    """Return the term that Oxigraph gives for an expression."""
    values = f"({terms.written(value) or 'UNDEF'} {remote or 'UNDEF'})"
    found: Any = ox.Store().query(
        f"SELECT ({expression} AS ?x) {{ VALUES (?a ?b) {{ {values} }} }}"
    )
    [solution] = found
    return as_plain(solution["x"])


def expected(story: Story, close: int) -> list[tuple[str, str]]:
    """Return the subjects of the window that closes then and their aggregates, best first."""
    assert isinstance(story.query, GroupQuery)
    groups: dict[str, dict[Any, int]] = {}
    for at, subject, value in story.readings:
        if close - 1000 * RANGE < at <= close:
            groups.setdefault(subject, {})[as_plain(read(value))] = at
    rows = []
    for subject, values in groups.items():
        remote = [text for since, text in story.remote[subject] if since <= close][-1]
        if remote is None:
            continue
        found = aggregated(story.query.function, [*values], distinct=False)
        score = scored(story.query.expression, found, remote)
        rows.append((place(score), max(values.values()), subject, terms.written(found)))
    rows.sort(key=lambda row: row[1:3], reverse=True)
    rows.sort(key=lambda row: row[0], reverse=story.query.descending)
    first = story.query.offset
    return [row[2:] for row in rows[first : first + story.query.limit]]


def run(story: Story, stream: Any = None, **options: Any) -> list[Answer]:
    engine = Engine(budget=100, **options)
    engine.service(f"{EX}remote", endpoint(story))
    engine.register(story.query.text)
    assert "pane partials" in engine.explain()
    engine.bind(f"{EX}stream", elements(story) if stream is None else stream)
    return list(engine.run())


def rows_of(answer: Answer) -> list[tuple[str, str]]:
    content: Any = answer.content
    found = [row.bindings.get("n") for row in content.rows]
    texts = ("" if one is None else str(one) for one in found)
    return list(zip(subjects_of(answer), texts, strict=True))


def summed(values: dict[str, list[str]], kind: str, *, descending: bool) -> Story:
    """Return a story of subjects that have some values each, the first subject first."""
    named = [(s, term(text, kind)) for s, texts in values.items() for text in texts]
    readings = [(100 * at, s, text) for at, (s, text) in enumerate(named, start=1)]
    remote: dict[str, list[tuple[int, str | None]]] = {
        s: [(0, term("1", "integer"))] for s in SUBJECTS
    }
    return Story(readings, remote, GroupQuery("?a", descending, 2, 0, function="SUM"))


TENTHS = {"a": ["0.3"], "b": ["0.1", "0.2"], "c": ["0.1", "0.3"]}
LARGE = {
    "a": [str(999_999_999_999_980 + n) for n in range(20)],
    "b": [str(999_999_999_999_980 + n) for n in range(19)] + ["999999999999998"],
    "c": [str(999_999_999_999_979), *(str(999_999_999_999_981 + n) for n in range(19))],
}


@examples(200)
@given(group_stories())
@example(summed(TENTHS, "decimal", descending=False))
@example(summed(TENTHS, "decimal", descending=True))
@example(summed(LARGE, "integer", descending=False))
@example(summed(LARGE, "integer", descending=True))
def test_groups_with_fresh_values_are_ranked_by_the_order_of_terms(story):
    for answer in run(story, policy="EXACT", oracle=True):
        assert rows_of(answer) == expected(story, answer.window.close)
        assert answer.stats["exact"]
        assert answer.stats["ndcg"] == answer.stats["precision"] == 1.0


@pytest.mark.parametrize("policy", sorted(POLICIES))
@examples(15)
@given(group_stories(is_still=True), st.sampled_from((0, 1, 20)))
def test_every_policy_ranks_groups_by_the_order_of_terms(policy, story, n):
    for answer in run(story, policy=policy, n=n):
        if answer.stats["exact"] or "VOI" not in policy:
            assert rows_of(answer) == expected(story, answer.window.close)


@examples(40)
@given(group_stories(), st.sampled_from((1, 200, 100_000)), st.booleans())
def test_places_and_cuts_change_nothing(story, size, is_cut):
    """What is read elsewhere comes as text, and a run goes on from its state."""
    lines = [f"<{EX}{s}> <{EX}reads> {value} <{EX}g/{at}> .\n" for at, s, value in story.readings]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stream.nq"
        path.write_text("".join(lines), encoding="utf-8")
        with in_splits(size=size, cuts=range(1000) if is_cut else ()):
            for answer in run(story, str(path), policy="EXACT"):
                assert rows_of(answer) == expected(story, answer.window.close)
