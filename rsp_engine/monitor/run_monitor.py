"""The run monitor: the status of a run, for the live view, the metrics and the manifest.

A run reports every answer to the monitor; the monitor reads everything else from the run on demand,
so that nothing is counted twice. Another thread may read the monitor at any time, and sees a
snapshot of the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from rsp_engine.model.answers import Solutions
from rsp_engine.monitor.histogram import AGES, SECONDS, Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rsp_engine.model.answers import Answer

__all__ = [
    "Counts",
    "DeliveringSink",
    "DeliveryStatus",
    "Extent",
    "MonitoredDriver",
    "QueryInfo",
    "QueryStatistics",
    "RunMonitor",
    "StartedRun",
]


@dataclass(slots=True)
class Counts:
    """The counters of a run."""

    elements: int = 0
    triples: int = 0
    answers: int = 0
    between_windows: int = 0
    dead: dict[str, int] = field(default_factory=dict)
    """Dead letters by kind, see `DeadLetter.kind`."""


class Extent(NamedTuple):
    """The progress of reading: `done` of `whole`, in bytes of files or in files of a folder.

    If a run reads both, the unit is thousandths, and all sources have the same weight.
    """

    done: int
    whole: int
    unit: Literal["bytes", "files", "thousandths"] = "bytes"


class DeliveryStatus(NamedTuple):
    """How far a sink has delivered the answers that were committed."""

    name: str
    delivered: int
    """How many answers were acknowledged in this run."""
    waiting: int
    """How many answers can be delivered, and are not."""
    lag: float | None
    """How long the first of them has been waiting, in seconds."""
    failures: int
    """How many attempts failed in this run."""
    trouble: str | None
    """Why the last attempt failed; None if it did not."""


class DeliveringSink(Protocol):
    """A sink, as far as it can be monitored."""

    @property
    def status(self) -> DeliveryStatus:
        """Return how far the sink has delivered."""


class MonitoredDriver(Protocol):
    """A driver, as far as it can be monitored."""

    @property
    def counts(self) -> Counts:
        """Return the counters so far."""

    @property
    def is_stopping(self) -> bool:
        """Return whether a stop of the run was requested."""

    @property
    def passes(self) -> int:
        """Return how often the run has looked for something to read."""

    def watermarks(self) -> Mapping[str, float]:
        """Return the watermark of each query, by name."""

    def evaluated(self) -> Mapping[str, int]:
        """Return how many windows the driver and executors have evaluated, where both can."""


class Refreshing(Protocol):
    """A running query, as far as it fetches remote data."""

    @property
    def name(self) -> str:
        """Return the name of the query."""

    def outcomes(self) -> Iterable[tuple[str, Mapping[str, int]]]:
        """Return how many fetched keys had each outcome, for each service."""


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """The static properties of a query.

    `streams` maps each window to its stream, and `policies` the IRI of each service to its policy.
    `budget` is the most keys that an evaluation may fetch; `None` if it is unbounded.
    """

    name: str
    form: str
    operator: str
    r2s: str
    prefixes: Mapping[str, str]
    streams: Mapping[str, str]
    policies: Mapping[str, str]
    budget: int | None = None


class StartedRun(NamedTuple):
    """A run that has started.

    `equals` has the names of the queries whose answers are those of another one, by its name.
    `sources` has the names of the sources of each stream; `extent` returns how much was read.
    """

    queries: Sequence[QueryInfo]
    equals: Mapping[str, Sequence[str]]
    steps: Sequence[Refreshing]
    driver: MonitoredDriver
    sources: Mapping[str, Sequence[str]]
    extent: Callable[[], Extent | None]


@dataclass(slots=True)
class QueryStatistics:
    """Statistics of the answers of one query."""

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
    """Durations of evaluations in seconds, fetching included."""
    last_seconds: float | None = None
    """That of the last evaluation."""
    ages: Histogram = field(default_factory=lambda: Histogram(AGES))
    """Ages of remote values in answers, in seconds of event time."""
    belief: Mapping[str, Any] | None = None
    """What a policy that learns believed of remote values at the last answer."""
    latest: tuple[Answer, Answer | None] | None = None
    """The last answer, and the one before it."""

    def record(self, answer: Answer, seconds: float) -> None:
        """Add an answer to the statistics."""
        stats = answer.stats
        self.windows += 1
        self.exact += bool(stats.get("exact", True))
        self.budget_spent += stats.get("budget_spent", 0)
        self.requests += stats.get("requests", 0)
        self.cold_misses += stats.get("cold_misses", 0)
        self.stale += stats.get("stale", 0)
        self.faults.update(stats.get("faults", {}))
        self.belief = stats.get("belief", self.belief)
        self.evaluation.add(seconds)
        self.last_seconds = seconds
        if isinstance(answer.content, Solutions):
            self.rows += len(answer.content.rows)
            for row in answer.content.rows:
                if row.age is not None:
                    self.ages.add(row.age / 1000)
        self.latest = answer, None if self.latest is None else self.latest[0]


class RunMonitor:
    """The status of a run; empty until the run starts."""

    def __init__(self) -> None:
        self.queries: dict[str, QueryStatistics] = {}
        self.service_budgets: dict[str, Counter[str]] = {}
        """How many keys of the budget of each service evaluations were given, and have spent."""
        self.sinks: Sequence[DeliveringSink] = ()
        """The sinks that deliver the answers to other programs."""
        self._started: StartedRun | None = None

    def begin(self, started: StartedRun) -> None:
        """Start to monitor a run."""
        self.queries = {info.name: QueryStatistics(info) for info in started.queries}
        self.service_budgets = {}
        self._started = started

    def evaluated(self, answer: Answer, seconds: float) -> None:
        """Record an answer, and the duration of its evaluation, for all queries that it answers."""
        for name in (answer.query, *self._equals(answer.query)):
            self.queries[name].record(answer, seconds)
        for service, keys in answer.stats.get("service_budgets", {}).items():
            self.service_budgets.setdefault(service, Counter()).update(keys)

    def _equals(self, name: str) -> Sequence[str]:
        """Return the names of the queries that the answers of a query answer too."""
        return () if self._started is None else self._started.equals.get(name, ())

    @property
    def elements(self) -> int:
        """The number of elements read."""
        return 0 if self._started is None else self._started.driver.counts.elements

    @property
    def triples(self) -> int:
        """The number of triples read."""
        return 0 if self._started is None else self._started.driver.counts.triples

    @property
    def between_windows(self) -> int:
        """The number of elements that fell between windows."""
        return 0 if self._started is None else self._started.driver.counts.between_windows

    @property
    def dead(self) -> dict[str, int]:
        """The number of dead letters by kind; the kinds contain no text of the input."""
        kinds = {} if self._started is None else self._started.driver.counts.dead.copy()
        return dict(sorted(kinds.items()))

    @property
    def late(self) -> int:
        """The number of elements that were late for all windows."""
        return self.dead.get("late", 0)

    @property
    def is_stopping(self) -> bool:
        """Whether a stop of the run was requested."""
        return self._started is not None and self._started.driver.is_stopping

    @property
    def passes(self) -> int:
        """How often the run has looked for something to read; it is stuck if this stands still."""
        return 0 if self._started is None else self._started.driver.passes

    def watermarks(self) -> Mapping[str, float]:
        """Return the watermark of each query, by name."""
        marks = {} if self._started is None else self._started.driver.watermarks()
        return {name: m for first, m in marks.items() for name in (first, *self._equals(first))}

    def shared(self) -> Mapping[str, int]:
        """Return how many windows the driver and executors have evaluated, where both can."""
        return {} if self._started is None else self._started.driver.evaluated()

    def refreshed(self) -> dict[tuple[str, str], Counter[str]]:
        """Return how many fetched keys had each outcome, by query and service."""
        counts: dict[tuple[str, str], Counter[str]] = {}
        for step in () if self._started is None else self._started.steps:
            for service, outcomes in step.outcomes():
                counts.setdefault((step.name, service), Counter()).update(outcomes)
        return counts

    def sources(self) -> dict[str, list[str]]:
        """Return the names of the sources of each stream."""
        sources = {} if self._started is None else self._started.sources
        return {stream: [*names] for stream, names in sources.items()}

    def deliveries(self) -> list[DeliveryStatus]:
        """Return how far each sink has delivered the answers."""
        return [sink.status for sink in self.sinks]

    def extent(self) -> Extent | None:
        """Return how much of the input was read; `None` if it is not finite."""
        return None if self._started is None else self._started.extent()
