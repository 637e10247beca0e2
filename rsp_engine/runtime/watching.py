"""What a run lets others see while it goes on: for the live view, the metrics and the manifest.

A run tells a watch of every answer, and is asked for everything else: nothing is counted twice. All
that is here may be read by another thread at any time; it then sees a moment of the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rsp_engine.model.answers import Solutions
from rsp_engine.runtime.histogram import AGES, SECONDS, Histogram
from rsp_engine.runtime.sources.extent import Extent, extent_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.model.answers import Answer
    from rsp_engine.plan.planner import Plan
    from rsp_engine.runtime.local import Counts
    from rsp_engine.runtime.sources import Source
    from rsp_engine.runtime.sources.cuts import Place
    from rsp_engine.runtime.step import Step

__all__ = ["QuerySeen", "Running", "Started", "Watch"]

_LATE = "late"
_KINDS = (_LATE, "before t0", "unsupported")


class Running(Protocol):
    """What runs queries, as far as it can be watched."""

    @property
    def counts(self) -> Counts:
        """Return what has passed so far."""

    @property
    def is_stopping(self) -> bool:
        """Tell whether somebody has ended the run before its end."""

    def watermarks(self) -> Mapping[str, float]:
        """Return how far each query has come, by its name."""

    def read_to(self) -> Mapping[int, Place]:
        """Return the last place that was read of sources that are read elsewhere, by number."""


class Started(NamedTuple):
    """A run that begins."""

    plans: Sequence[Plan]
    steps: Sequence[Step]
    driver: Running
    sources: Mapping[str, Sequence[Source]]


@dataclass(slots=True)
class QuerySeen:
    """What is known of the answers of one query."""

    plan: Plan
    windows: int = 0
    rows: int = 0
    exact: int = 0
    budget_spent: int = 0
    requests: int = 0
    cold_misses: int = 0
    stale: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    evaluation: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """How long evaluations took, in seconds, with what was fetched for them."""
    ages: Histogram = field(default_factory=lambda: Histogram(AGES))
    """How old remote values in answers were, in seconds of event time."""
    latest: tuple[Answer, Answer | None] | None = None
    """The last answer, and the one before."""

    def hear(self, answer: Answer, seconds: float) -> None:
        """Take note of an answer."""
        stats = answer.stats
        self.windows += 1
        self.exact += bool(stats.get("exact", True))
        self.budget_spent += stats.get("budget_spent", 0)
        self.requests += stats.get("requests", 0)
        self.cold_misses += stats.get("cold_misses", 0)
        self.stale += stats.get("stale", 0)
        self.faults.update(stats.get("faults", {}))
        self.evaluation.add(seconds)
        if isinstance(answer.content, Solutions):
            self.rows += len(answer.content.rows)
            for row in answer.content.rows:
                if row.age is not None:
                    self.ages.add(row.age / 1000)
        self.latest = answer, None if self.latest is None else self.latest[0]


class Watch:
    """Sees a run. Before one begins there is nothing to see."""

    def __init__(self) -> None:
        self.queries: dict[str, QuerySeen] = {}
        self._started: Started | None = None

    def begin(self, started: Started) -> None:
        """Look at a run from now on."""
        self.queries = {plan.physical.name: QuerySeen(plan) for plan in started.plans}
        self._started = started

    def evaluated(self, answer: Answer, seconds: float) -> None:
        """Take note of an answer, and of how long it took."""
        self.queries[answer.query].hear(answer, seconds)

    @property
    def elements(self) -> int:
        """How many elements were read."""
        return 0 if self._started is None else self._started.driver.counts.elements

    @property
    def triples(self) -> int:
        """How many triples were read."""
        return 0 if self._started is None else self._started.driver.counts.triples

    @property
    def between_windows(self) -> int:
        """How many elements fell between windows."""
        return 0 if self._started is None else self._started.driver.counts.between_windows

    @property
    def dead(self) -> dict[str, int]:
        """How much was set aside, by kind: what the reasons say of the input is left out."""
        kinds: Counter[str] = Counter()
        if self._started is not None:
            for kind, number in self._started.driver.counts.dead.copy().items():
                kinds[kind if kind in _KINDS else "malformed"] += number
        return dict(sorted(kinds.items()))

    @property
    def late(self) -> int:
        """How many elements were late for all windows."""
        return self.dead.get(_LATE, 0)

    @property
    def is_stopping(self) -> bool:
        """Whether somebody has ended the run before its end."""
        return self._started is not None and self._started.driver.is_stopping

    def watermarks(self) -> Mapping[str, float]:
        """Return how far each query has come, by its name."""
        return {} if self._started is None else self._started.driver.watermarks()

    def refreshed(self) -> dict[tuple[str, str], Counter[str]]:
        """Return how many keys were fetched, by query and service, then by what came of it."""
        found: dict[tuple[str, str], Counter[str]] = {}
        for step in () if self._started is None else self._started.steps:
            for service, outcomes in step.outcomes():
                found.setdefault((step.plan.name, service), Counter()).update(outcomes)
        return found

    def sources(self) -> dict[str, list[str]]:
        """Return the sources of each stream, as they were named."""
        found = {} if self._started is None else self._started.sources
        return {stream: [source.name for source in each] for stream, each in found.items()}

    def extent(self) -> Extent | None:
        """Return how much of the input was read, if all of it has an end."""
        if self._started is None:
            return None
        sources = [source for found in self._started.sources.values() for source in found]
        return extent_of(sources, self._started.driver.read_to())
