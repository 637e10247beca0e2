"""What a run lets others see while it goes on: for the live view, the metrics and the manifest.

A run tells a watch of every answer, and is asked for everything else: nothing is counted twice. All
that is here may be read by another thread at any time; it then sees a moment of the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from rsp_engine.model.answers import Solutions
from rsp_engine.monitor.histogram import AGES, SECONDS, Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rsp_engine.model.answers import Answer

__all__ = ["Counts", "Extent", "QueryInfo", "QuerySeen", "RunMonitor", "Running", "Started"]

_LATE = "late"
_KINDS = (_LATE, "before t0", "unsupported")


@dataclass(slots=True)
class Counts:
    """What passed through a run."""

    elements: int = 0
    triples: int = 0
    answers: int = 0
    between_windows: int = 0
    dead: dict[str, int] = field(default_factory=dict)
    """Dead letters by the first word of their reason."""


class Extent(NamedTuple):
    """So much was read, of so much: bytes of files, or files of a folder.

    Where both are read, they are thousandths of all sources, each of which counts the same.
    """

    done: int
    whole: int
    unit: Literal["bytes", "files", "thousandths"] = "bytes"


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


class Refreshing(Protocol):
    """A query that runs, as far as it fetches remote data."""

    @property
    def name(self) -> str:
        """Return the name of the query."""

    def outcomes(self) -> Iterable[tuple[str, Mapping[str, int]]]:
        """Return what came of the keys that were fetched, for each service."""


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """What is known of a query before it runs.

    `streams` has the stream of each window, and `policies` the policy of each service, by its IRI.
    `budget` is how many keys an evaluation may fetch; nothing if that has no bound.
    """

    name: str
    form: str
    operator: str
    r2s: str
    prefixes: Mapping[str, str]
    streams: Mapping[str, str]
    policies: Mapping[str, str]
    budget: int | None = None


class Started(NamedTuple):
    """A run that begins.

    `sources` has the names of the sources of each stream, and `extent` tells how much was read.
    """

    queries: Sequence[QueryInfo]
    steps: Sequence[Refreshing]
    driver: Running
    sources: Mapping[str, Sequence[str]]
    extent: Callable[[], Extent | None]


@dataclass(slots=True)
class QuerySeen:
    """What is known of the answers of one query."""

    info: QueryInfo
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


class RunMonitor:
    """Sees a run. Before one begins there is nothing to see."""

    def __init__(self) -> None:
        self.queries: dict[str, QuerySeen] = {}
        self._started: Started | None = None

    def begin(self, started: Started) -> None:
        """Look at a run from now on."""
        self.queries = {info.name: QuerySeen(info) for info in started.queries}
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
                found.setdefault((step.name, service), Counter()).update(outcomes)
        return found

    def sources(self) -> dict[str, list[str]]:
        """Return the sources of each stream, as they were named."""
        found = {} if self._started is None else self._started.sources
        return {stream: [*names] for stream, names in found.items()}

    def extent(self) -> Extent | None:
        """Return how much of the input was read, if all of it has an end."""
        return None if self._started is None else self._started.extent()
