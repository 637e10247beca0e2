"""Checks of the engine against the evaluator: every operator, and every way to read a stream.

A failing case is reduced and described, so that it can be rerun and pasted into an issue.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from tests.differential.evaluation import Answer, Case, Shown, answers, aside
from tests.differential.families import FAMILIES
from tests.differential.running import EXACT_OPERATORS, WAYS, Outcome, is_refusal, run
from tests.differential.terms import Blank, Term, number_of, written
from tests.differential.windows import Element

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.differential.evaluation import Aside


@dataclass(frozen=True, slots=True)
class Failure:
    """A run with a wrong answer, or with an error."""

    case: Case
    operator: str
    way: str
    expected: Sequence[Answer]
    found: Outcome | Exception

    @property
    def run(self) -> str:
        return f"{self.operator} ({self.way})"

    def __str__(self) -> str:
        if isinstance(self.found, Exception):
            found = f"  {type(self.found).__name__}: {self.found}"
        else:
            found = _answers_text(self.found.answers, self.found.aside)
        return "\n".join(
            (
                f"family {self.case.family}, seed {self.case.seed},"
                f" --operator {self.operator}, streams read by: {self.way}",
                described(self.case),
                "expected:",
                _answers_text(self.expected, aside(self.case)),
                "found:",
                found,
            )
        )


def drawn(family: str, seed: int) -> Case:
    """Return the case of a family that belongs to a seed."""
    return FAMILIES[family](Random(f"{family} {seed}"), seed)  # noqa: S311 - repeatable on purpose


def failures(case: Case) -> Iterator[Failure]:
    """Yield the runs of a case that go wrong."""
    expected = answers(case)
    chance = Random(case.seed)  # noqa: S311 - repeatable on purpose
    ways = ways_of(case)
    for operator in EXACT_OPERATORS:
        for way in ways if operator == "auto" else (chance.choice(ways),):
            failure = attempt(case, operator, way, expected)
            if failure is not None:
                yield failure


def ways_of(case: Case) -> tuple[str, ...]:
    """Return the ways to read the streams: N-Quads has no empty elements, and no negative times."""
    elements = [e for sources in case.streams.values() for source in sources for e in source]
    is_written = all(element.triples and element.timestamp >= 0 for element in elements)
    return WAYS if is_written else WAYS[:1]


def attempt(
    case: Case, operator: str, way: str, expected: Sequence[Answer] | None = None
) -> Failure | None:
    """Run a case, and return what is wrong with the outcome, if something is.

    An operator that is not for the query is none of its runs.
    """
    expected = answers(case) if expected is None else expected
    try:
        found = run(case, operator, way)
    except Exception as error:
        return None if is_refusal(error) else Failure(case, operator, way, expected, error)
    return None if agree(case, expected, found) else Failure(case, operator, way, expected, found)


def agree(case: Case, expected: Sequence[Answer], found: Outcome) -> bool:
    """Tell whether an outcome is right: windows, rows in order, their terms, ranks and scores."""
    if [a[:2] for a in found.answers] != [a[:2] for a in expected]:
        return False
    if aside(case) != found.aside or not _are_exact(case, found):
        return False
    pairs = zip(expected, found.answers, strict=True)
    return all(_are_same(case, one.rows, other.rows) for one, other in pairs)


def _row(row: Shown) -> list[tuple[str, str]]:
    return sorted((name, _anonymous(term)) for name, term in row.bindings.items())


def _are_exact(case: Case, found: Outcome) -> bool:
    """Tell whether answers claim to be exact, where nothing may keep them from that."""
    is_certain = not case.services or case.options.get("policy") == "EXACT"
    return all(found.are_exact) or not is_certain


def _are_same(case: Case, expected: Sequence[Shown], found: Sequence[Shown]) -> bool:
    one, other = ([(row.rank, _row(row)) for row in rows] for rows in (expected, found))
    if case.has_blank_nodes and not case.select.order_by:
        one.sort()
        other.sort()
    scores = zip((row.score for row in expected), (row.score for row in found), strict=False)
    return one == other and all(_is_score(term, shown) for term, shown in scores)


def _anonymous(term: Term) -> str:
    return "_:" if isinstance(term, Blank) else written(term)


def _is_score(term: Term | None, shown: object) -> bool:
    """Tell whether a number is the score of a row. What is no number may have one, as dates do."""
    number = None if term is None else number_of(term)
    if number is None:
        return True
    assert isinstance(shown, float | int | None)
    if shown is None or math.isnan(shown):
        return shown is not None and number.is_nan
    return float(shown) == float(number.text().replace("INF", "inf"))


def described(case: Case) -> str:
    """Describe a case: the query, the options and the streams."""
    setting = case.setting
    chosen = {
        "bounds": setting.bounds,
        "t0": setting.t0,
        "report": setting.report,
        "max_delay": setting.max_delay,
        "match": case.match,
        "arrivals": case.arrivals,
        **case.options,
    }
    streams = [
        f"  {name}{number or ''} {element.timestamp:>4}  " + " . ".join(element.lines())
        for name, sources in case.streams.items()
        for number, source in enumerate(sources)
        for element in source
    ]
    remote = [
        f"  {service.value}  " + " ".join(map(written, triple))
        for service, triples in case.services.items()
        for triple in sorted(triples, key=str)
    ]
    return "\n".join(
        [case.query(), f"options: {chosen}", "streams, as they are read:", *streams, *remote]
    )


def _answers_text(found: Sequence[Answer], left: Aside) -> str:
    lines = []
    for answer in found:
        lines.append(f"  window {answer.open} to {answer.close}")
        for row in answer.rows:
            terms = (f"?{name}={_anonymous(term)}" for name, term in row.bindings.items())
            lines.append(f"    {'' if row.rank is None else row.rank} {' '.join(terms)}")
    reasons = sorted(reason for _, reason in left.elements())
    return "\n".join([*lines, *([f"  set aside: {', '.join(reasons)}"] if reasons else [])])


def smaller(failure: Failure) -> Failure:
    """Return a failure of the same run with as few elements and triples as can be found."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for case in _parts(failure.case):
            found = attempt(case, failure.operator, failure.way)
            if found is not None and _is_alike(found, failure):
                failure, is_smaller = found, True
                break
    return failure


def _is_alike(one: Failure, other: Failure) -> bool:
    """Tell whether two failures are of one kind: an error does not become a wrong answer."""
    return type(one.found) is type(other.found)


def _parts(case: Case) -> Iterator[Case]:
    """Yield the case without one element, and then without one triple."""
    for name, sources in case.streams.items():
        for place, source in enumerate(sources):
            for at in range(len(source)):
                yield _with(case, name, place, [*source[:at], *source[at + 1 :]])
    for name, sources in case.streams.items():
        for place, source in enumerate(sources):
            for at, element in enumerate(source):
                for triple in sorted(element.triples, key=str) if len(element.triples) > 1 else ():
                    left = Element(element.timestamp, element.triples - {triple})
                    yield _with(case, name, place, [*source[:at], left, *source[at + 1 :]])


def _with(case: Case, name: str, place: int, source: Sequence[Element]) -> Case:
    sources = [*case.streams[name]]
    sources[place] = source
    return replace(case, streams={**case.streams, name: sources})
