"""The engine: register queries, bind their streams, and iterate over the answers.

>>> engine = Engine()
>>> _ = engine.register('''
...     PREFIX : <http://example.org/>
...     REGISTER RSTREAM :warm AS SELECT ?room ?t FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]
...     WHERE { WINDOW :w { ?room :temperature ?t } } ORDER BY DESC(?t) LIMIT 1''')
>>> engine.bind("http://example.org/s", [
...     (1_000, '<http://example.org/a> <http://example.org/temperature> 20 .'),
...     (2_000, '<http://example.org/b> <http://example.org/temperature> 25 .')])
>>> for answer in engine.run():
...     for row in answer.content.rows:
...         print(answer.window.close, row.rank, row.bindings["room"].value, row.score)
10000 1 http://example.org/b 25.0
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from rsp_engine.drivers.checkpoint.commits import CheckpointSpec
from rsp_engine.drivers.local import LocalDriver
from rsp_engine.drivers.micro_batch import MicroBatchDriver
from rsp_engine.drivers.registered_query import Query
from rsp_engine.drivers.replay_clock import ReplayClock
from rsp_engine.drivers.service_binding import connect, recorded
from rsp_engine.drivers.splits.split_run import SplitRun
from rsp_engine.drivers.stream_binding import (
    check_bound_streams,
    check_repeatable,
    close_sources,
    open_sources,
    place_of,
)
from rsp_engine.drivers.user_functions import as_sparql
from rsp_engine.errors import BindingError, render
from rsp_engine.evaluators.pairs import Skybands
from rsp_engine.evaluators.plan_identity import plan_identity
from rsp_engine.evaluators.service.service_plan import ServiceOptions, changes_stream
from rsp_engine.evaluators.step import Step
from rsp_engine.grammar import check
from rsp_engine.grammar.definitions import USUAL, defined
from rsp_engine.grammar.files import read_query
from rsp_engine.grammar.iris import absolute
from rsp_engine.io.sources.extent import extent_of
from rsp_engine.io.sources.live.lifecycle import live_sources
from rsp_engine.io.sources.live.source import LiveSource
from rsp_engine.monitor.run_monitor import Counts, Started
from rsp_engine.plan.explain.text import explain, query_info
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import QueryPlan, plan
from rsp_engine.plan.services import refuse_unasked
from rsp_engine.plan.shapes.incomplete import refuse_undeclared
from rsp_engine.plan.unsupported import refuse_unread
from rsp_engine.policies.registry import register as add_policy
from rsp_engine.replica.endpoints.endpoint import Limits
from rsp_engine.replica.store.estimator import DeclaredIntervals, LearnedIntervals

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from rsp_engine.drivers.checkpoint.rewindable import RewindableOutput
    from rsp_engine.drivers.service_binding import Bindable
    from rsp_engine.drivers.spark.driver import SparkDriver
    from rsp_engine.evaluators.acquatop.config import ArrivalRule
    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.model.answers import Answer, Graph, Solutions
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.model.windows import Bounds
    from rsp_engine.monitor.run_monitor import RunMonitor
    from rsp_engine.operators.windows.report import ReportKind
    from rsp_engine.plan.monotone import DeclaredRanges as Monotone
    from rsp_engine.plan.options import MatchRule, OperatorName
    from rsp_engine.policies.policy import Policy
    from rsp_engine.replica.endpoints.recording import RecordingEndpoint

__all__ = ["Engine", "RunnerName"]

_LOG = logging.getLogger("rsp")
RunnerName = Literal["local", "spark"]
"""What runs the queries: this process alone, or Spark."""


class Engine:
    """Runs registered queries over bound streams, in this process or on Spark."""

    def __init__(  # noqa: PLR0913 - an option is an argument
        self,
        *,
        bounds: Bounds = "(]",
        t0: int = 0,
        report: ReportKind = "nonempty",
        max_delay: int = 0,
        operator: OperatorName = "auto",
        dead_letter: Callable[[DeadLetter], None] | None = None,
        policy: str | None = None,
        budget: int = 10,
        n: int = 10,
        max_requests: int | None = None,
        deadline_ms: int | None = None,
        seed: int = 0,
        snapshot: bool = True,
        capacity: int | None = None,
        change_interval_ms: int | None = None,
        arrivals: ArrivalRule | None = None,
        oracle: bool = False,
        match: MatchRule = "window",
        max_instances: int | None = None,
        runner: RunnerName = "local",
        master: str = "local[*]",
        checkpoint: str | Path | None = None,
        place_bytes: int = 4 << 20,
        speed: float | None = None,
        packages: str | None = None,
    ) -> None:
        limits = Limits(max_requests, deadline_ms)
        estimation = (
            LearnedIntervals()
            if change_interval_ms is None
            else DeclaredIntervals(change_interval_ms)
        )
        services = ServiceOptions(policy, budget, n, limits, seed, snapshot, capacity, estimation)
        self._options = QueryOptions(
            bounds,
            t0,
            report,
            operator=operator,
            service_options=services,
            arrivals=arrivals,
            oracle=oracle,
            match=match,
            max_instances=max_instances,
        )
        self._runner = runner
        self._master = master
        self._checkpoint = checkpoint
        self._place_bytes = place_bytes
        self._speed = speed
        self._packages = packages
        self._driver: SparkDriver | MicroBatchDriver | None = None
        self._answers: Generator[Answer] | None = None
        self._paced: ReplayClock | None = None
        self._max_delay = max_delay
        self._dead_letter = dead_letter or (lambda _: None)
        self._plans: list[QueryPlan] = []
        self._sources: dict[str, list[ElementSource]] = {}
        self._feeds: dict[str, list[ElementSource]] = {}
        self._places: dict[str, list[str]] = {}
        """What tells each source of a stream from others, without secrets."""
        self._steps: dict[str, Step] = {}
        self._watch: RunMonitor | None = None
        self.counts = Counts()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End a run that was not iterated to its end, and give back what it holds."""
        self.stop()
        if self._answers is not None:
            self._answers.close()

    def function(
        self, name: str, call: Callable[..., Any], *, monotone: Monotone | None = None
    ) -> None:
        """Register a function, by a bare name or an IRI, before the queries that call it.

        Say that it `rises`, `falls` or is `constant` when its arguments rise, or so for each; or
        that it is a `distance`: the same both ways, and not falling as its arguments move apart.
        """
        definitions = {n: made for n, made in self._options.definitions.items() if n != name}
        if self._options.definitions.get(name) not in (None, USUAL.get(name)):
            raise BindingError(f"{name} is defined already", "take another name")
        functions = {**self._options.functions, name: as_sparql(call)}
        declared = dict(self._options.monotone)
        if monotone is not None:
            declared[name] = monotone
        self._options = replace(
            self._options, functions=functions, monotone=declared, definitions=definitions
        )

    def define(self, text: str, prefixes: Mapping[str, str] | None = None) -> None:
        """Define a function by an expression, before the queries that call it.

        A call stands for the expression, wherever it is evaluated; IRIs may use the prefixes.

        >>> Engine().define("F(?mentions, ?followers) = ?mentions / 100 + ?followers / 1000000")
        """
        definitions = defined([text], prefixes, self._options.definitions)
        if both := definitions.keys() & self._options.functions.keys():
            raise BindingError(f"{min(both)} is registered already", "take another name")
        self._options = replace(self._options, definitions=definitions)

    def graph(self, iri: str, path: str | Path) -> None:
        """Say which file a static graph is, before the queries that read it."""
        graphs = {**self._options.graphs, iri: Path(path)}
        self._options = replace(self._options, graphs=graphs)

    def service(self, iri: str, endpoint: Bindable, *, modified: str | None = None) -> None:
        """Say where the data of a SERVICE are, before the queries that ask for them.

        An endpoint is a URL, a pyoxigraph `Store` or `Dataset`, a configured `SPARQLWrapper`, a
        `Recorded` history or any other endpoint, or a function that makes one. `modified` is the
        property by which it tells when a key was last modified, if it does: what is told to be
        unchanged is not fetched.
        """
        iri = absolute(iri)
        services = {**self._options.services, iri: connect(endpoint)}
        known = {name: told for name, told in self._options.modified.items() if name != iri}
        if modified is not None:
            known[iri] = modified
        self._options = replace(self._options, services=services, modified=known)

    def changes(self, iri: str, source: str | ElementSource | Iterable[tuple[int, str]]) -> None:
        """Say where a service pushes its changes, before the queries that ask for its data.

        Each element holds the new triples of some keys, from its time on.
        """
        iri = absolute(iri)
        self._options = replace(self._options, feeds=self._options.feeds | {iri})
        self._bind(self._feeds, changes_stream(iri), source)

    def range(self, stream: str, low: float, high: float) -> None:
        """Say what the least and the largest value of a stream are, before the queries of it.

        That is for ranked queries whose objects have their attributes in several streams.
        """
        ranges = {**self._options.ranges, absolute(stream): (low, high)}
        self._options = replace(self._options, ranges=ranges)

    def policy(self, policy: Policy) -> None:
        """Add a refresh policy of your own, before the queries that use it."""
        policies = add_policy(policy, self._options.policies)
        self._options = replace(self._options, policies=policies)

    def register(self, text: str, source: str = "<query>", folder: Path | None = None) -> Query:
        """Register a query. Relative IRIs in FROM are files in `folder`, else the current folder.

        A query reads files in that folder, and those that `graph` names: no link leads out of it.
        Give a folder of its own to a text that you do not trust.

        What is suspicious about it is logged, and stands in the `warnings` of the query.
        """
        options = replace(self._options, folder=folder or Path())
        made = plan(check(text, source), text, source, options)
        if made.physical.name in (p.physical.name for p in self._plans):
            raise BindingError(
                f"two queries are called {made.physical.name}", "give each a name with REGISTER"
            )
        self._plans.append(made)
        for warning in made.warnings:
            _LOG.warning("%s", render(warning, text, source, "warning"))
        return Query(made.query, made.logical, made.physical, made.warnings, self._snapshot)

    def _snapshot(self, name: str, k: int | None, size: int | None) -> Solutions | Graph:
        if name not in self._steps:
            raise BindingError(f"{name} has no snapshots yet", "ask while the engine runs")
        return self._steps[name].now(k, size)

    def register_file(self, path: str) -> Query:
        """Register the query of a file."""
        return self.register(read_query(path), path, Path(path).parent)

    def explain(self) -> str:
        """Return what will be done, query by query."""
        return "\n".join(map(explain, self._plans))

    @property
    def forms(self) -> list[Literal["SELECT", "CONSTRUCT", "ASK"]]:
        """The forms of the registered queries."""
        return [made.physical.operator.form for made in self._plans]

    def bind(self, stream: str, source: str | ElementSource | Iterable[tuple[int, str]]) -> None:
        """Bind a stream to a source: a path, a URL, `-`, or pairs of a time and a Turtle text.

        A stream that is bound several times is all of its sources, merged by time.
        """
        self._bind(self._sources, absolute(stream), source)

    def _bind(
        self,
        bound: dict[str, list[ElementSource]],
        stream: str,
        source: str | ElementSource | Iterable[tuple[int, str]],
    ) -> None:
        """Open a source, and note what tells it from others."""
        found = open_sources(source)
        bound.setdefault(stream, []).append(found)
        self._places.setdefault(stream, []).append(place_of(source, found))

    def run(self, outputs: Sequence[RewindableOutput] = ()) -> Iterator[Answer]:
        """Yield the answers of all queries until the sources end.

        With a checkpoint, `outputs` are where answers are written to: they go back to where they
        were when the state was written from which the run goes on.
        """
        self.check()
        plans = [made.physical for made in self._plans]
        sources = {**self._sources, **self._feeds}
        if self._runner == "local" and self._checkpoint is None and not self.is_live:
            steps = self._made(plans)
            driver = LocalDriver(steps, sources, self._dead_letter, self._max_delay, self._pace())
            self.counts = driver.counts
            answers = self._begun(driver, steps, sources)
        else:
            check_repeatable(
                sources, is_kept=self._checkpoint is not None, is_paced=self._speed is not None
            )
            answers = self._run_in_places(plans, sources, outputs)
            answers = live_sources(self._live(), self._checkpoint, answers)
        self._answers = answers
        return answers

    @property
    def is_on_spark(self) -> bool:
        """Whether Spark runs the queries."""
        return self._runner == "spark"

    @property
    def is_live(self) -> bool:
        """Whether a stream comes from a broker, and so has no end."""
        return bool(self._live())

    @property
    def is_stoppable(self) -> bool:
        """Whether `stop` ends a run: one on Spark, of live streams, or with a checkpoint."""
        return self.is_on_spark or self.is_live or self._checkpoint is not None

    def _live(self) -> list[LiveSource]:
        bound = {**self._sources, **self._feeds}.values()
        return [source for found in bound for source in found if isinstance(source, LiveSource)]

    def stop(self) -> None:
        """End a run after what it has in hand; another thread, or a signal, may say so.

        Live streams end here, and with them their windows; with a checkpoint they do not, since
        the run can go on later. Other runs in this process end when their streams do.
        """
        if self._checkpoint is None and self.is_live:
            for source in self._live():
                source.end()
        elif self._driver is not None:
            self._driver.stop()
            if self._paced is not None:  # what is in hand is finished without waiting
                self._paced.stop()

    def _check_runner(self) -> None:
        kafka = [source.name for source in self._live() if source.name.startswith("kafka")]
        if kafka and not self.is_on_spark:
            raise BindingError(f"{kafka[0]} is read through Spark", "run it on Spark")

    def _run_in_places(
        self,
        plans: Sequence[PhysicalPlan],
        sources: Mapping[str, Sequence[ElementSource]],
        outputs: Sequence[RewindableOutput],
    ) -> Generator[Answer]:
        """Run what has no end, or must not be lost, or is read by many."""
        self._check_runner()
        if self.is_on_spark:
            self._start_spark()
        recordings: list[RecordingEndpoint] = []
        folder = None if self._checkpoint is None else str(self._checkpoint)
        if folder is not None:
            plans = [recorded(plan, recordings) for plan in plans]
        steps = self._made(plans)
        run = SplitRun(steps, sources, self._dead_letter, self._max_delay, self._pace())
        kept = CheckpointSpec(folder, self._identity(plans, sources), recordings, outputs)
        driver = self._on_spark(run, kept) if self.is_on_spark else self._steadily(run, kept)
        self._driver, self.counts = driver, driver.counts
        return self._begun(driver, steps, sources)

    def _identity(
        self, plans: Sequence[PhysicalPlan], sources: Mapping[str, Sequence[ElementSource]]
    ) -> dict[str, Any]:
        """Return what a checkpoint belongs to."""
        return {
            "queries": [plan_identity(plan) for plan in plans],
            "sources": {stream: self._places[stream] for stream in sources},
            "max_delay": self._max_delay,
            **({} if self.is_on_spark else {"runner": "local"}),
        }

    def _start_spark(self) -> None:
        """Start Spark with its packages: sources that are read by it need it first."""
        if self._packages is not None or any(s.name.startswith("kafka") for s in self._live()):
            from rsp_engine.drivers.spark.session import start_session

            start_session(self._master, self._packages)

    def _steadily(self, run: SplitRun, kept: CheckpointSpec) -> MicroBatchDriver:
        return MicroBatchDriver(run, kept, place_bytes=self._place_bytes)

    def _on_spark(self, run: SplitRun, kept: CheckpointSpec) -> SparkDriver:
        from rsp_engine.drivers.spark.driver import SparkDriver, SparkOptions

        options = SparkOptions(self._master, self._place_bytes)
        return SparkDriver(run, kept, options=options)

    def watched_by(self, watch: RunMonitor) -> None:
        """Let somebody see the next run: how far it is, and every answer."""
        self._watch = watch

    def _begun(
        self,
        driver: LocalDriver | SparkDriver | MicroBatchDriver,
        steps: list[Step],
        sources: Mapping[str, Sequence[ElementSource]],
    ) -> Generator[Answer]:
        """Return the answers of a run; whoever watches is told of it."""
        if self._watch is not None:
            self._watch.begin(self._started(steps, driver, sources))
            for step in steps:
                step.watch = self._watch
        return close_sources(steps, driver.run())

    def _started(
        self,
        steps: list[Step],
        driver: LocalDriver | SparkDriver | MicroBatchDriver,
        sources: Mapping[str, Sequence[ElementSource]],
    ) -> Started:
        """Return what a monitor may know of a run."""
        every = [source for found in sources.values() for source in found]
        return Started(
            [query_info(made) for made in self._plans],
            steps,
            driver,
            {stream: [source.name for source in found] for stream, found in sources.items()},
            lambda: extent_of(every, driver.read_to()),
        )

    def _made(self, plans: Sequence[PhysicalPlan]) -> list[Step]:
        """Return a step for each plan; queries of pairs share what they can."""
        skybands = Skybands()
        steps = [Step(plan, skybands) for plan in plans]
        self._steps = {step.plan.name: step for step in steps}
        return steps

    def _pace(self) -> ReplayClock | None:
        self._paced = None if self._speed is None else ReplayClock(self._speed)
        return self._paced

    def check(self) -> None:
        """Raise what is wrong, if a run would be refused: a stream without a source, and the like.

        Nothing is read or sent for that.
        """
        check_bound_streams([made.physical for made in self._plans], self._sources)
        asked = (service for made in self._plans for service in made.physical.services)
        refuse_unasked(self._options.bound_services, asked)
        refuse_unread(self._options, (made.query for made in self._plans))
        refuse_undeclared(self._options, (made.physical.operator for made in self._plans))
