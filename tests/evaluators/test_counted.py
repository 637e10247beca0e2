"""Ranked queries over windows that count: the answers of the general path, and of the oracle.

What is drawn beside the stream: windows of elements and of triples that overlap, touch or leave
gaps, elements that match nothing and move the window all the same, several sources, delays.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.drivers.local import LocalDriver
from rsp_engine.drivers.splits.split_run import SplitRun
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.step import Step
from rsp_engine.evaluators.topk import TopkConfig
from rsp_engine.grammar import check
from rsp_engine.io.sources.memory import MemorySource
from rsp_engine.model.answers import Answer, Solutions
from rsp_engine.model.windows import CountFrame
from rsp_engine.options import OPERATORS, RankingOptions, WindowOptions
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.model.answers import Interval
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.options import MatchRule, OperatorName

EX = "http://example.org/"
RANKERS = sorted({*OPERATORS} - {"auto", "general", "eaa", "sla", "approximate"})
Element = tuple[int, str]
Triple = tuple[str, str, int]
Pair = tuple[str, int]

PLAIN = "SELECT ?s ?v {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT {}"
ASKED = (
    PLAIN,
    "SELECT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY ?v LIMIT {} OFFSET 1",
    "SELECT * {} WHERE {{ WINDOW :w {{ ?s ?k ?v FILTER (?v > 4) }} }} ORDER BY ?v LIMIT {}",
    "SELECT ?s (2 * ?v - 1 AS ?x) {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"
    " ORDER BY DESC(?x) LIMIT {}",
)
SEVERAL = (
    "SELECT ?t (?v * ?n AS ?x) {} WHERE {{ WINDOW :w {{ ?t :p ?v ; :q ?n }} }}"
    " ORDER BY DESC(?x) LIMIT {}",
    "SELECT ?t {} WHERE {{ WINDOW :w {{ ?t :q ?n ; :p ?v FILTER (?v > 4) }} }}"
    " ORDER BY ?v LIMIT {}",
)
GROUPS = (
    "SELECT ?s (SUM(?v) AS ?x) {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"
    " GROUP BY ?s ORDER BY DESC(?x) LIMIT {}",
    "SELECT ?s (MAX(?v) AS ?x) {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"
    " GROUP BY ?s ORDER BY DESC(?x) LIMIT {}",
    "SELECT ?s (AVG(?v) AS ?x) {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"
    " GROUP BY ?s ORDER BY ?x LIMIT {}",
)


class Run(NamedTuple):
    """The windows of the answers with their rows, and why elements were set aside."""

    answers: list[tuple[Interval, Solutions]]
    aside: list[str]


class Story(NamedTuple):
    """A drawn scenario: the parameters of a query, and its sources."""

    frame: CountFrame
    k: int
    r2s: str
    report: str
    max_delay: int
    sources: list[list[Element]]


sizes = st.integers(1, 7)
frames = st.builds(CountFrame, sizes, sizes, st.sampled_from(("ELEMENTS", "ROWS", "TRIPLES")))
of_elements = st.builds(CountFrame, sizes, sizes)


@st.composite
def stories(
    draw: st.DrawFn,
    element: st.SearchStrategy[str],
    frames: st.SearchStrategy[CountFrame] = frames,
) -> Story:
    """Draw elements, each with a delay with which it is read: some come too late."""
    pairs = st.tuples(st.integers(1, 30), st.integers(0, 6), element, st.booleans())
    found = draw(st.lists(pairs, min_size=draw(st.sampled_from((0, 15))), max_size=30))
    read = sorted(found, key=lambda pair: pair[0] + pair[1])
    sources = [
        [(time, text) for time, _, text, one in read if one is which] for which in (False, True)
    ]
    return Story(
        draw(frames),
        draw(st.integers(1, 4)),
        draw(st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM"))),
        draw(st.sampled_from(("nonempty", "every"))),
        draw(st.integers(0, 6)),
        sources,
    )


def text_of(triples: Sequence[Triple]) -> str:
    return f"@prefix : <{EX}> . " + " ".join(f":{s} :{p} {v} ." for s, p, v in triples)


subjects = st.sampled_from("abc")
verbs = st.sampled_from("pq")
parts = st.lists(st.tuples(subjects, verbs, st.integers(0, 9)), max_size=3)
tied = parts.map(text_of)
untied = st.lists(st.integers(0, 11), max_size=3).map(
    lambda values: text_of([("abc"[v % 3], "ppq"[v // 4], v) for v in values])
)
"""A value is of one subject and one verb only, so that no two solutions tie."""


def planned(asked: str, story: Story, operator: OperatorName, match: MatchRule = "window") -> Step:
    size, step, unit = story.frame.size, story.frame.step, story.frame.unit
    window = f"FROM NAMED WINDOW :w ON :s [{unit} {size} STEP {step}]"
    text = f"PREFIX : <{EX}> REGISTER {story.r2s} :q AS {asked.format(window, story.k)}"
    options = QueryOptions(
        windows=WindowOptions(report=story.report),  # type: ignore[arg-type]
        ranking=RankingOptions(operator=operator, match=match),
    )
    return Step(plan(check(text), text, "<query>", options).physical)


def run(asked: str, story: Story, operator: OperatorName, match: MatchRule = "window") -> Run:
    letters: list[DeadLetter] = []
    step = planned(asked, story, operator, match)
    if operator != "general":
        assert isinstance(step.plan.operator, TopkConfig | GroupTopkConfig), step.plan.why
    sources = {f"{EX}s": [MemorySource(source) for source in story.sources]}
    driver = LocalDriver(SplitRun([step], sources, letters.append, story.max_delay))
    return Run(
        [window_and_content(answer) for answer in driver.run()],
        [letter.reason for letter in letters],
    )


def window_and_content(answer: Answer) -> tuple[Interval, Solutions]:
    assert isinstance(answer.content, Solutions)
    return answer.window, answer.content


@pytest.mark.parametrize("asked", ASKED)
@examples(80)
@given(stories(untied))
def test_without_ties_the_answers_are_those_of_the_general_path(asked, story):
    expected = run(asked, story, "general")
    event(f"{min(len(expected.answers), 5)} answers, {'some' if expected.aside else 'none'} late")
    assert run(asked, story, "auto") == expected


@pytest.mark.parametrize("operator", RANKERS)
@examples(40)
@given(stories(tied))
def test_with_ties_every_operator_gives_what_the_oracle_gives(operator, story):
    assert run(PLAIN, story, operator) == run(PLAIN, story, "oracle")


def naive(story: Story, counted: Sequence[tuple[int, Sequence[Triple]]]) -> list[list[Pair]]:
    """Return the best of each window, by score, then by the last element, then by term."""
    size, step, k = story.frame.size, story.frame.step, story.k
    found = []
    for start in range(0, len(counted), step):
        came: dict[Pair, int] = {}
        for number, (_, part) in enumerate(counted[start : start + size]):
            came |= {(s, v): number for s, p, v in part if p == "p"}
        best = sorted(came, key=lambda pair: (pair[1], came[pair], pair[0]), reverse=True)
        found.append(best[:k])
    return found


@pytest.mark.parametrize("operator", ["mintopk", "sap"])
@examples(60)
@given(st.data())
def test_ties_are_broken_by_the_element_that_counts_later_and_then_by_the_term(operator, data):
    """Worked out the long way, from elements that come in the order in which they count."""
    drawn = data.draw(st.lists(st.tuples(st.integers(1, 12), parts), max_size=25))
    in_order = sorted((time, sorted(set(part), key=as_counted)) for time, part in drawn)
    source = [(time, text_of(part)) for time, part in in_order]
    story = Story(data.draw(frames), data.draw(st.integers(1, 4)), "RSTREAM", "every", 0, [source])
    if story.frame.unit == "TRIPLES":
        in_order = [(time, [triple]) for time, part in in_order for triple in part]
    answers = run(PLAIN, story, operator).answers
    rows = [[_pair(row.bindings) for row in content.rows] for _, content in answers]
    assert rows == naive(story, in_order)


def as_counted(triple: Triple) -> tuple[str, ...]:
    """Return what triples of one element, and elements of one time, are put in order by."""
    return tuple(map(str, triple))


def _pair(bindings: Mapping[str, Any]) -> Pair:
    return bindings["s"].value.removeprefix(EX), int(bindings["v"].value)


elements = st.integers(0, 11).map(lambda v: text_of([(f"t{v}", "p", v), (f"t{v}", "q", 3)]))
halves = st.integers(0, 11).map(lambda v: text_of([(f"u{v}", "q", v)]))


@pytest.mark.parametrize("asked", SEVERAL)
@examples(60)
@given(stories(elements | halves, of_elements))
def test_several_patterns_that_one_element_matches_are_ranked_too(asked, story):
    assert run(asked, story, "auto", "element") == run(asked, story, "general")


@pytest.mark.parametrize("asked", GROUPS)
@examples(60)
@given(stories(tied))
def test_groups_have_the_scores_of_the_general_path(asked, story):
    """Scores alone: of groups with equal ones either path may name another first."""
    story = story._replace(r2s="RSTREAM")
    found, expected = run(asked, story, "auto"), run(asked, story, "general")
    assert found.aside == expected.aside
    assert [_scores(a) for a in found.answers] == [_scores(a) for a in expected.answers]


def _scores(answer: tuple[Interval, Solutions]) -> tuple[Interval, list[float | None]]:
    window, content = answer
    return window, [row.score for row in content.rows]


@pytest.mark.parametrize("operator", sorted({*RANKERS} - {"oracle"}))
@pytest.mark.parametrize(("size", "step"), [(120, 1), (50, 3), (200, 60)])
def test_windows_of_many_slides_are_ranked_as_by_the_oracle(operator, size, step):
    """Values rise and fall again, so that answers run out, and some elements match nothing."""
    chance = Random(size)  # noqa: S311 - a story
    found = [
        (at, text_of([(f"s{chance.randrange(40)}", chance.choice("pppq"), abs(at % 90 - 45))]))
        for at in range(1, 401)
    ]
    story = Story(CountFrame(size, step), 3, "RSTREAM", "nonempty", 0, [found])
    assert run(PLAIN, story, operator) == run(PLAIN, story, "oracle")
