"""The approximate operator from the text of a query on: what it estimates, keeps and answers."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pyoxigraph import Literal, NamedNode, Triple

from benchmarks.bench_incomplete import FEW, SLIDES, of_the_paper, stored_counts
from rsp_engine.evaluators.step import Step
from rsp_engine.experiments.datasets.incomplete import observed
from rsp_engine.grammar import check
from rsp_engine.model.answers import Solutions
from rsp_engine.options import RankingOptions
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.options import OperatorName

EX = "http://example.org/"
K = 10


class Seen(NamedTuple):
    """An evaluation: its time, its answer, and the evaluator at that time."""

    now: int
    best: set[str]
    collected: Any


def evaluations(size: int, rho: float, operator: OperatorName) -> Iterator[Seen]:
    """Run the streams of the paper through a query, an observation for each millisecond."""
    step = size // SLIDES
    windows = " ".join(
        f"FROM NAMED WINDOW :w{n} ON :s{n} [RANGE {size}ms STEP {step}ms]" for n in (0, 1)
    )
    text = f"""PREFIX : <{EX}> REGISTER RSTREAM :q AS SELECT ?o (SUM(?v) AS ?score) {windows}
    WHERE {{ {{ WINDOW :w0 {{ ?o :p0 ?v }} }} UNION {{ WINDOW :w1 {{ ?o :p1 ?v }} }} }}
    GROUP BY ?o ORDER BY DESC(?score) LIMIT {K}"""
    options = QueryOptions(ranking=RankingOptions(operator=operator))
    query = Step(plan(check(text), text, "q", options).physical)
    found = observed(2 * size + FEW * step, 2, rho)
    columns = (column.tolist() for column in found)
    for now, (stream, key, value) in enumerate(zip(*columns, strict=True), 1):
        name = NamedNode(f"{EX}o{key}")
        triple = Triple(name, NamedNode(f"{EX}p{stream}"), Literal(value))
        query.take(f"{EX}s{stream}", now, [triple], now)
        for answer in query.due(now):
            if answer.window.close >= 2 * size:
                assert isinstance(answer.content, Solutions)
                best = {str(row.bindings["o"]) for row in answer.content.rows}
                yield Seen(answer.window.close, best, query._evaluator)


def test_the_sketches_know_objects_by_their_names():
    """Numbers are reused as soon as an object is dropped; a window has about 903 objects."""
    size, rho = 1000, 0.1
    found = observed(2 * size + FEW * size // SLIDES, 2, rho)
    unions, chances = [], []
    for seen in evaluations(size, rho, "approximate"):
        window = slice(seen.now - size, seen.now)
        one, other = (set(found.keys[window][found.streams[window] == n].tolist()) for n in (0, 1))
        known, clock = seen.collected._operator._chances, seen.now
        union = known._sketches[0].union(known._sketches[1]).distinct(clock)
        unions.append(union / len(one | other))
        both = len(one & other) / 2
        chances.append((known.still(clock)[0, 1], both / (len(other) - both)))
    assert len(unions) >= FEW
    assert all(0.9 < share < 1.1 for share in unions)
    assert mean(told for told, _ in chances) == pytest.approx(0.1, abs=0.05)
    assert all(told == pytest.approx(true, abs=0.08) for told, true in chances)


@pytest.mark.parametrize("size", [500, 1000])
@pytest.mark.parametrize("rho", [0.2, 0.5, 0.9])
def test_it_keeps_as_few_as_the_operator_by_itself_and_is_as_precise(size, rho):
    """The operator by itself knows objects by numbers that are never given to others."""
    instances, objects, answers = [], [], []
    for seen in evaluations(size, rho, "approximate"):
        seen.collected._operator.prune()
        instances.append(len(seen.collected._operator))
        objects.append(len(seen.collected._observations.numbers()))
        answers.append(seen.best)
    exact = [seen.best for seen in evaluations(size, rho, "eaa")]
    precision = mean(len(a & b) / K for a, b in zip(answers, exact, strict=True))
    alone = stored_counts(size, 2, rho, seeds=(0,))
    assert precision >= max(0.80, alone.precision - 0.05)
    assert mean(instances) <= 1.1 * min(of_the_paper(size, rho), alone.approximate)
    assert mean(objects) <= 1.2 * mean(instances)
