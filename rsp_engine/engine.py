"""The Python API: register queries, bind their streams, and iterate over the answers.

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
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from rsp_engine.drivers.bindings import (
    check_bound_streams,
    check_repeatable,
    close_steps_after,
    connect,
    is_frame,
    live_sources,
    open_bound,
    record_services,
    source_identity,
)
from rsp_engine.drivers.checkpoint.commits import CheckpointSpec
from rsp_engine.drivers.fed_run import FedRun
from rsp_engine.drivers.local import LocalDriver
from rsp_engine.drivers.registered_query import Query
from rsp_engine.drivers.replay_clock import ReplayClock
from rsp_engine.drivers.runner_choice import choose_runner
from rsp_engine.drivers.splits.split_run import SplitRun
from rsp_engine.drivers.user_functions import as_sparql
from rsp_engine.errors import BindingError, render
from rsp_engine.evaluators.pairs.config import Skybands
from rsp_engine.evaluators.physical_plan import changes_stream, plan_identity
from rsp_engine.evaluators.service.shared_services import BudgetRules, SharedServices
from rsp_engine.evaluators.shared_panes import SharedPanes
from rsp_engine.evaluators.step import Step
from rsp_engine.grammar import checked
from rsp_engine.grammar.definitions import USUAL, defined
from rsp_engine.grammar.iris import absolute, full_iri
from rsp_engine.grammar.validate import read_query
from rsp_engine.io.sources.extent import extent_of
from rsp_engine.io.sources.live.source import LiveSource
from rsp_engine.model.option import described, milliseconds, takes_options
from rsp_engine.monitor.run_monitor import Counts, StartedRun
from rsp_engine.options import (
    EngineOptions,
    RankingOptions,
    RunOptions,
    ServiceOptions,
    WindowOptions,
)
from rsp_engine.plan.equal_queries import EqualQueries
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import QueryPlan, plan
from rsp_engine.plan.services import (
    refuse_unused_budgets,
    refuse_unused_services,
    refuse_unused_weights,
)
from rsp_engine.plan.unsupported import refuse_undeclared, refuse_unused_graphs
from rsp_engine.policies.registry import register as add_policy

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Generator,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from rsp_engine.drivers.bindings import Bindable
    from rsp_engine.drivers.checkpoint.commits import RewindableOutput
    from rsp_engine.drivers.runner_choice import RunnerChoice
    from rsp_engine.drivers.spark.data_frame import Frame
    from rsp_engine.drivers.spark.driver import SparkDriver
    from rsp_engine.drivers.unseen_predicates import UnseenPredicates
    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.io.sources.predicate_sample import PredicateSample
    from rsp_engine.io.sources.times import TimeUnit
    from rsp_engine.model.answers import Answer, Graph, Solutions
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.monitor.run_monitor import RunMonitor
    from rsp_engine.plan.monotone import DeclaredDirections as Monotone
    from rsp_engine.policies.policy import Policy
    from rsp_engine.replica.endpoints.recording import RecordingEndpoint

__all__ = ["Engine"]

_LOG = logging.getLogger("rsp")


class Engine:
    """An engine that runs registered queries over bound streams, in this process or on Spark.

    Set it up first (`function`, `define`, `graph`, `service`, `changes`, `range`, `policy`), then
    `register` the queries, `bind` their streams, and iterate over `run()`. All times are in
    milliseconds. As a context manager, the engine closes itself.

    The keywords are the fields of `EngineOptions`. Durations are milliseconds, or texts such as
    `"5s"`. Streams, services and graphs have IRIs, or names with a prefix: those in `prefixes`, and
    those of the registered queries. `"<...>"` is always an IRI.

    Raises:
        TypeError: If there is no such option.
        ValueError: If the value of an option is out of range.

    >>> with Engine(max_delay="5s", report="every") as engine:
    ...     engine.is_on_spark, engine.is_live
    (False, False)
    """

    @takes_options(EngineOptions)
    def __init__(self, options: EngineOptions) -> None:
        self._options = QueryOptions(
            windows=options.part(WindowOptions),
            ranking=options.part(RankingOptions),
            services=options.part(ServiceOptions),
        )
        self._run_options = options.part(RunOptions)
        self._runner_choice: RunnerChoice | None = None
        self._checkpoint = options.checkpoint
        self._split_bytes = options.split_bytes
        self._speed = options.speed
        self._prefixes = options.prefixes or {}
        self._driver: SparkDriver | LocalDriver | None = None
        self._answers: Generator[Answer] | None = None
        self._fed: FedRun | None = None
        self._replay_clock: ReplayClock | None = None
        self._max_delay = milliseconds(options.max_delay)
        self._dead_letter = options.dead_letter or (lambda _: None)
        self._plans: list[QueryPlan] = []
        self._sources: dict[str, list[ElementSource]] = {}
        self._feeds: dict[str, list[ElementSource]] = {}
        self._identities: dict[str, list[str]] = {}
        """The identity of each source of a stream, without secrets."""
        self._frames = 0
        """How many DataFrames are bound."""
        self._rows: TemporaryDirectory[str] | None = None
        """The folder of their rows, without a checkpoint."""
        self._steps: dict[str, Step] = {}
        self._monitor: RunMonitor | None = None
        self.counts = Counts()
        """How many elements, triples and answers have passed through the last run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the run, if it was not iterated to its end, and release its resources.

        >>> Engine().close()
        """
        self.stop()
        if self._answers is not None:
            self._answers.close()
        if self._fed is not None:
            self._fed.close()
        if self._rows is not None:
            self._rows.cleanup()

    def function(
        self, name: str, call: Callable[..., Any], *, monotone: Monotone | None = None
    ) -> None:
        """Register a Python function, before the queries that call it.

        The function takes and returns plain Python values. If it raises, or returns None, the call
        has no value, as any error in SPARQL.

        Args:
            name: A bare name or an IRI.
            call: The function.
            monotone: How its value changes as an argument grows: `"rises"`, `"falls"` or
                `"constant"`, or a tuple with one of these, or None, for each argument. `"distance"`
                declares a symmetric function of two arguments that never falls as they move apart.
                By default nothing is known.

        Raises:
            BindingError: If `define` has defined the name.

        >>> Engine().function("double", lambda x: 2 * x, monotone="rises")
        """
        definitions = {n: known for n, known in self._options.definitions.items() if n != name}
        if self._options.definitions.get(name) not in (None, USUAL.get(name)):
            raise BindingError(f"{name} is defined already", "choose another name")
        functions = {**self._options.functions, name: as_sparql(call)}
        declared = dict(self._options.monotone)
        if monotone is not None:
            declared[name] = monotone
        self._options = replace(
            self._options, functions=functions, monotone=declared, definitions=definitions
        )

    def define(self, text: str, prefixes: Mapping[str, str] | None = None) -> None:
        """Define a function by an expression, before the queries that call it.

        The planner replaces each call by the expression.

        Args:
            text: The definition: `NAME(?a, ?b) = EXPRESSION`.
            prefixes: The prefixes of the IRIs in the text. Default: those of the engine.

        Raises:
            RspError: If the text is no definition, or the name is taken.

        >>> Engine().define("F(?mentions, ?followers) = ?mentions / 100 + ?followers / 1000000")
        """
        known = self.prefixes if prefixes is None else prefixes
        definitions = defined([text], known, self._options.definitions)
        if both := definitions.keys() & self._options.functions.keys():
            raise BindingError(f"{min(both)} is registered already", "choose another name")
        self._options = replace(self._options, definitions=definitions)

    def graph(self, iri: str, path: str | Path) -> None:
        """Bind a static graph to a file, before the queries that read it.

        Args:
            iri: The IRI of the graph.
            path: An RDF file.

        Raises:
            BindingError: If the prefix of the name is not known.

        >>> Engine(prefixes={"ex": "http://example.org/"}).graph("ex:rooms", "rooms.ttl")
        """
        graphs = {**self._options.graphs, self._iri(iri): Path(path)}
        self._options = replace(self._options, graphs=graphs)

    def service(self, iri: str, endpoint: Bindable, *, modified: str | None = None) -> None:
        """Bind a SERVICE to an endpoint, before the queries that use it.

        Args:
            iri: The IRI of the SERVICE.
            endpoint: A URL, the path of a file (RDF, or a history as CSV or JSON Lines), a
                pyoxigraph `Store` or `Dataset`, a configured `SPARQLWrapper`, an object with
                `fetch` and `snapshot`, or a function that makes one from a `RemotePattern`.
            modified: The IRI of the property that states when a key was last modified. Keys that
                it reports unchanged are not fetched. By default there is no such property.

        Raises:
            BindingError: If the prefix of a name is not known.
            ServiceError: If a service cannot be bound to such an object.

        >>> from pyoxigraph import Store
        >>> Engine().service("http://example.org/users", Store())
        """
        iri = absolute(self._iri(iri))
        endpoints = {**self._options.endpoints, iri: connect(endpoint)}
        properties = {name: verb for name, verb in self._options.modified.items() if name != iri}
        if modified is not None:
            properties[iri] = self._iri(modified)
        self._options = replace(self._options, endpoints=endpoints, modified=properties)

    def changes(self, iri: str, source: str | ElementSource | Iterable[tuple[int, str]]) -> None:
        """Bind a change stream of a SERVICE, before the queries that use the service.

        Each element holds the new triples of some keys, valid from its timestamp on.

        Args:
            iri: The IRI of the SERVICE.
            source: As for `bind`.

        Raises:
            BindingError: If the prefix of the name is not known.
            SourceError: If the source cannot be opened.

        >>> Engine().changes("http://example.org/users", [])
        """
        iri = absolute(self._iri(iri))
        self._options = replace(self._options, feeds=self._options.feeds | {iri})
        self._bind(self._feeds, changes_stream(iri), source)

    def range(self, stream: str, low: float, high: float) -> None:
        """Declare the value range of a stream's attribute, before the queries that read it.

        Ranked queries whose objects have attributes on several streams use it; the default is 0 to
        1.

        Args:
            stream: The IRI of the stream.
            low: The smallest value, at least 0.
            high: The largest value.

        Raises:
            BindingError: Unless 0 <= low <= high, and high is finite; or if the prefix of the name
                is not known.

        >>> Engine().range("http://example.org/readings", 0, 250)
        """
        ranges = {**self._options.ranges, absolute(self._iri(stream)): (low, high)}
        self._options = replace(self._options, ranges=ranges)

    def policy(self, policy: Policy) -> None:
        """Add a refresh policy of your own, before the queries that use it.

        Args:
            policy: Any object with the members of `Policy`.

        Raises:
            ValueError: If a member is missing, or the name is taken.

        >>> from rsp_engine import RankedPolicy
        >>> from rsp_engine.policies.tsm import tsm
        >>> Engine().policy(RankedPolicy("MY-TSM", "the window's top", "my notes", "window", tsm))
        """
        policies = add_policy(policy, self._options.policies)
        self._options = replace(self._options, policies=policies)

    def register(self, text: str, source: str = "<query>", folder: Path | None = None) -> Query:
        """Parse, check and plan a query, and register it.

        A query reads only the files in `folder`, and those that `graph` names; symbolic links do
        not lead out of the folder. Give untrusted text a folder of its own. Warnings are logged,
        and are in `Query.warnings`.

        Args:
            text: The query, in RSP-QL.
            source: Its name in error messages.
            folder: Where relative IRIs in FROM are looked up. Default: the current folder.

        Raises:
            QueryError: If the text is not RSP-QL, breaks a rule of it, or cannot be evaluated.
            BindingError: If the name of the query is taken, or the policy is not known.

        >>> query = Engine().register('''
        ...     PREFIX : <http://example.org/>
        ...     SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]
        ...     WHERE { WINDOW :w { ?s :p ?o } }''')
        >>> query.warnings
        ()
        """
        options = replace(self._options, folder=folder or Path())
        query, warnings = checked(text, source)
        planned = plan(query, text, source, options)
        name = planned.physical.name
        if name in (other.physical.name for other in self._plans):
            raise BindingError(f"two queries are called {name}", "give each a name with REGISTER")
        self._plans.append(planned)
        warnings += planned.warnings
        for warning in warnings:
            _LOG.warning("%s", render(warning, text, source, "warning"))
        return Query(
            planned.query,
            planned.whole,
            planned.physical,
            warnings,
            planned.refusals,
            self._snapshot,
        )

    def _snapshot(self, name: str, k: int | None, size: int | None) -> Solutions | Graph:
        if name not in self._steps:
            raise BindingError(f"{name} has no snapshots yet", "call this while the engine runs")
        return self._steps[name].now(k, size)

    def register_file(self, path: str) -> Query:
        """Register the query of a file; relative IRIs in FROM are files next to it.

        Args:
            path: An RSP-QL file, at most 2 MB, in UTF-8; `-` is the standard input.

        Raises:
            QueryFileError: If the file cannot be read.
            QueryError: As `register`.
            BindingError: As `register`.
        """
        return self.register(read_query(path), path, Path(path).parent)

    def explain(self, *, why_not: bool = False) -> str:
        """Return the plan of each query as text.

        Args:
            why_not: Whether to add why no other operator was chosen.

        >>> Engine().explain()
        ''
        """
        # A run explains nothing.
        from rsp_engine.drivers.splits.shared_matching import shared_matching
        from rsp_engine.plan.explain.text import explain_all

        matching = shared_matching([planned.physical for planned in self._plans])
        rules = self.budget_rules()
        return explain_all(self._plans, why_not=why_not, rules=rules, matching=matching)

    @property
    def forms(self) -> list[Literal["SELECT", "CONSTRUCT", "ASK"]]:
        """The forms of the registered queries, in their order."""
        return [planned.physical.operator.query.form for planned in self._plans]

    def bind(
        self,
        stream: str,
        source: str | ElementSource | Iterable[tuple[int, str]] | Frame,
        *,
        template: str | Path | None = None,
        time: str | None = None,
        unit: TimeUnit = "ms",
    ) -> None:
        """Bind a stream to a source.

        If you bind a stream several times, its sources are merged by time. The keywords are those
        of a DataFrame; a path and a URL have options of their own, behind a question mark.

        Args:
            stream: The IRI of the stream.
            source: A path, a URL, `-` for the standard input, an `ElementSource`, pairs of a
                timestamp in ms and a Turtle text, or a DataFrame of Spark, batch or streaming.
            template: The file of a template that turns a row into triples. Default: the columns
                `subject`, `predicate` and `object` are a triple.
            time: The column of the time. Default: `timestamp` with a template, `time` without.
            unit: What a time that is a number counts: `ms`, `s`, `us` or `ns`.

        Raises:
            BindingError: If the prefix of the name is not known, or a DataFrame lacks a column.
            SourceError: If the source cannot be opened.

        >>> Engine().bind("http://example.org/s", [(1_000, "<urn:a> <urn:p> 1 .")])
        """
        iri = absolute(self._iri(stream))
        if is_frame(source):
            path = None if template is None else str(template)
            opened = self._frame(cast("Frame", source), path, time, unit)
            self._bind(self._sources, iri, opened)
            return
        if (template, time, unit) != (None, None, "ms"):
            hint = "write options behind the address: readings.csv?template=readings.ttl"
            raise BindingError("only a DataFrame takes template, time and unit", hint)
        self._bind(self._sources, iri, cast("str | ElementSource", source))

    def _frame(
        self, frame: Frame, template: str | None, time: str | None, unit: TimeUnit
    ) -> ElementSource:
        """Open a DataFrame; its rows are in the checkpoint, or in a temporary folder."""
        from rsp_engine.drivers.spark.data_frame import FrameOptions, open_frame

        is_kept = self._checkpoint is not None
        if self._checkpoint is not None:
            folder = Path(self._checkpoint) / "frames"
            folder.mkdir(parents=True, exist_ok=True)
        else:
            self._rows = self._rows or TemporaryDirectory(prefix="rsp-")
            folder = Path(self._rows.name)
        self._frames += 1
        options = FrameOptions(template, time, unit)
        return open_frame(frame, options, folder, self._frames, is_kept=is_kept)

    def _iri(self, name: str) -> str:
        """Return the IRI of a name; raise if it has a prefix that nobody declares."""
        iri = full_iri(name, self.prefixes)
        if iri is None:
            prefix = name.partition(":")[0]
            hint = (
                f'register its query first, or declare it: Engine(prefixes={{"{prefix}": "..."}})'
            )
            raise BindingError(f"the prefix {prefix}: of {name} is not known", hint)
        return iri

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that names may have: those of the registered queries, and of the options."""
        prefixes: dict[str, str] = {}
        for planned in self._plans:
            prefixes |= planned.query.prefixes
        return {**prefixes, **self._prefixes}

    def _bind(
        self,
        bound: dict[str, list[ElementSource]],
        stream: str,
        source: str | ElementSource | Iterable[tuple[int, str]],
    ) -> None:
        """Open a source, and note its identity for checkpoints."""
        opened = open_bound(source)
        self._runner_choice = None
        bound.setdefault(stream, []).append(opened)
        self._identities.setdefault(stream, []).append(source_identity(source, opened))

    def run(self, outputs: Sequence[RewindableOutput] = ()) -> Iterator[Answer]:
        """Return an iterator over the answers of all queries, until the sources end.

        The answers of one query are in the order of its windows. The example at the top of this
        module shows a run.

        Args:
            outputs: The sinks that you write the answers to. When a run resumes from a checkpoint,
                they are rewound to their positions at the last commit.

        Raises:
            BindingError: As `check`; or if the runner cannot read a source.
            DriverError: If the driver cannot start or go on.
            StateError: If the checkpoint is damaged, or belongs to another run.
            ValueError: If the speed is not positive.
        """
        self.check()
        plans = [planned.physical for planned in self._plans]
        sources = {**self._sources, **self._feeds}
        check_repeatable(
            sources,
            has_checkpoint=self._checkpoint is not None,
            is_paced=self._speed is not None,
        )
        answers = self._run_splits(plans, sources, outputs)
        self._answers = live_sources(self._live(), self._checkpoint, answers)
        return self._answers

    def begin(self, *, dead_letter: Callable[[DeadLetter], None] | None = None) -> FedRun:
        """Begin a run in this process that you feed element by element; close the engine after it.

        Bind no streams: feed those that the queries read. It answers as `run` does over a source
        with the same elements in the same order.

        Args:
            dead_letter: What to call with each late or malformed element. Default: that of the
                engine.

        Raises:
            BindingError: As `check`; or if a stream is bound, or the engine has a checkpoint, a
                speed or Spark as its runner.

        >>> engine = Engine()
        >>> _ = engine.register('''
        ...     PREFIX : <http://example.org/>
        ...     SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]
        ...     WHERE { WINDOW :w { ?s :p ?o } }''')
        >>> run = engine.begin()
        >>> run.feed("http://example.org/s", 1_000, "<urn:a> <http://example.org/p> 1 .")
        []
        >>> [answer.window.close for answer in run.advance(10_000)]
        [10000]
        """
        self.check(sources=False)
        if self._sources:
            raise BindingError("a run that is fed has no sources", "bind no stream: feed it")
        options = {"checkpoint": self._checkpoint, "speed": self._speed}
        for name in (name for name, value in options.items() if value is not None):
            raise BindingError(f"a run that is fed has no {name}", "leave it out")
        if self._run_options.runner == "spark":
            raise BindingError("a run that is fed is not on Spark", "leave out the runner")
        queries = EqualQueries([planned.physical for planned in self._plans])
        services = SharedServices(queries.weighed(self.budget_rules()))
        steps = self._make_steps(queries.evaluated, services, can_share=False)
        by_name = {step.plan.name: step for step in steps}
        self._steps = {name: by_name[queries.first_of(name)] for name in queries.names}
        run = FedRun(steps, queries, dead_letter or self._dead_letter, self._max_delay)
        self._fed, self.counts = run, run.counts
        return run

    @property
    def runner_choice(self) -> RunnerChoice:
        """Where the queries run, and why there; `runner="auto"` depends on what is bound."""
        if self._runner_choice is None:
            bound = {**self._sources, **self._feeds}.values()
            opened = [source for sources in bound for source in sources]
            self._runner_choice = choose_runner(self._run_options, opened)
        return self._runner_choice

    @property
    def is_on_spark(self) -> bool:
        """Whether Spark runs the queries."""
        return self.runner_choice.runner == "spark"

    @property
    def is_live(self) -> bool:
        """Whether a bound stream is live, and so has no end."""
        return bool(self._live())

    @property
    def is_stoppable(self) -> bool:
        """Whether `stop` can end the run: on Spark, with live streams, or with a checkpoint."""
        return self.is_on_spark or self.is_live or self._checkpoint is not None

    def _live(self) -> list[LiveSource]:
        bound = {**self._sources, **self._feeds}.values()
        return [source for sources in bound for source in sources if isinstance(source, LiveSource)]

    def stop(self) -> None:
        """End the run after the current micro-batch. Threads and signal handlers may call this.

        Without a checkpoint live streams end, and their last windows close. With one they do not,
        since the run can resume. A run that is not `is_stoppable` goes on until its streams end.

        >>> Engine().stop()
        """
        if self._checkpoint is None and self.is_live:
            for source in self._live():
                source.end()
            if self._driver is not None:
                self._driver.take_the_rest()
        elif self._driver is not None:
            self._driver.stop()
            for source in self._live():
                source.interrupt()
            if self._replay_clock is not None:  # finish the micro-batch without waiting
                self._replay_clock.stop()

    def _run_splits(
        self,
        plans: Sequence[PhysicalPlan],
        sources: Mapping[str, Sequence[ElementSource]],
        outputs: Sequence[RewindableOutput],
    ) -> Generator[Answer]:
        """Run split by split, in this process or on Spark."""
        _LOG.info("%s", self.runner_choice)
        on_spark = self.is_on_spark
        identity = self._identity(plans, sources)
        queries = EqualQueries(plans)
        plans = queries.evaluated
        services = SharedServices(queries.weighed(self.budget_rules()))
        recordings: list[RecordingEndpoint] = []
        folder = None if self._checkpoint is None else str(self._checkpoint)
        if folder is not None:
            plans = record_services(plans, recordings, services)
        steps = self._make_steps(plans, services, can_share=on_spark)
        by_name = {step.plan.name: step for step in steps}
        self._steps = {name: by_name[queries.first_of(name)] for name in queries.names}
        run = SplitRun(steps, sources, self._dead_letter, self._max_delay, self._start_clock())
        spec = CheckpointSpec(folder, identity, recordings, outputs)
        driver = self._spark_driver(run, spec) if on_spark else self._local_driver(run, spec)
        self._driver, self.counts = driver, driver.counts
        return self._answers_of(driver, steps, queries, sources)

    def _identity(
        self, plans: Sequence[PhysicalPlan], sources: Mapping[str, Sequence[ElementSource]]
    ) -> dict[str, Any]:
        """Return what identifies the run that a checkpoint belongs to."""
        rules = self.budget_rules()
        return {
            "queries": [plan_identity(plan) for plan in plans],
            "sources": {stream: self._identities[stream] for stream in sources},
            "max_delay": self._max_delay,
            **({"budgets": rules.identity()} if rules.rates else {}),
            **({} if self.is_on_spark else {"runner": "local"}),
        }

    def _spark_settings(self) -> dict[str, str]:
        """Return the settings of Spark that the user has set."""
        pairs = (setting.partition("=") for setting in self._run_options.conf)
        return {key: value for key, _, value in pairs}

    def _local_driver(self, run: SplitRun, checkpoint: CheckpointSpec) -> LocalDriver:
        return LocalDriver(run, checkpoint, split_bytes=self._split_bytes)

    def _spark_driver(self, run: SplitRun, checkpoint: CheckpointSpec) -> SparkDriver:
        from rsp_engine.drivers.spark.driver import SparkDriver, SparkOptions

        options = SparkOptions(self._run_options.master, self._split_bytes, self._spark_settings())
        return SparkDriver(run, checkpoint, options=options)

    def unseen_predicates(self, query: str) -> list[UnseenPredicates]:
        """Return the predicates of a query that its streams did not have in the last run.

        Of files and folders, the beginning is read again; of other sources, the run has sampled the
        beginning. Nothing is returned of a stream without elements.

        Args:
            query: The name of the query, `Query.physical.name`.

        >>> Engine().unseen_predicates("http://example.org/q")
        []
        """
        from rsp_engine.drivers.unseen_predicates import unseen_predicates

        bound: dict[str, list[tuple[ElementSource, PredicateSample | None]]] = {}
        opened = ((stream, each) for stream, all_ in self._sources.items() for each in all_)
        for number, (stream, source) in enumerate(opened):
            sample = None if self._driver is None else self._driver.sample(number)
            bound.setdefault(stream, []).append((source, sample))
        named = [planned for planned in self._plans if planned.physical.name == query]
        return [each for planned in named for each in unseen_predicates(planned.query, bound)]

    def watched_by(self, watch: RunMonitor) -> None:
        """Attach a monitor to the next run; it sees the run's progress and every answer.

        Args:
            watch: The monitor. Another thread may read it while the run goes on.

        >>> from rsp_engine.monitor.run_monitor import RunMonitor
        >>> Engine().watched_by(RunMonitor())
        """
        self._monitor = watch

    def _answers_of(
        self,
        driver: LocalDriver | SparkDriver,
        steps: list[Step],
        queries: EqualQueries,
        sources: Mapping[str, Sequence[ElementSource]],
    ) -> Generator[Answer]:
        """Return the answers of a driver, and attach the monitor."""
        if self._monitor is not None:
            self._monitor.begin(self._run_info(steps, queries, driver, sources))
            for step in steps:
                step.watch = self._monitor
        return close_steps_after(steps, queries.named(driver.run(), driver.counts))

    def _run_info(
        self,
        steps: list[Step],
        queries: EqualQueries,
        driver: LocalDriver | SparkDriver,
        sources: Mapping[str, Sequence[ElementSource]],
    ) -> StartedRun:
        """Return what a monitor needs to know about a run."""
        from rsp_engine.plan.explain.text import query_info

        opened = [source for bound in sources.values() for source in bound]
        return StartedRun(
            [query_info(planned) for planned in self._plans],
            queries.equals,
            steps,
            driver,
            {stream: [source.name for source in bound] for stream, bound in sources.items()},
            # A replay reads ahead of what it shows: how much was read says nothing.
            lambda: None if self._speed is not None else extent_of(opened, driver.read_to()),
        )

    def _make_steps(
        self, plans: Sequence[PhysicalPlan], services: SharedServices, *, can_share: bool
    ) -> list[Step]:
        """Return a step for each plan; queries of pairs share their skybands.

        If other processes can share the work, they may evaluate the windows of some.
        """
        skybands = Skybands()
        if can_share:
            from rsp_engine.drivers.panes.distributed_step import steps_of
            from rsp_engine.drivers.spark.executor import can_send

            steps = steps_of(plans, skybands, services, can_send)
        else:
            panes = SharedPanes()
            steps = [Step(plan, skybands, services, panes) for plan in plans]
        return steps

    def budget_rules(self) -> BudgetRules:
        """Return the budgets of services and the weights of queries, by IRI.

        Raises:
            BindingError: If no query calls a service that has a budget, or there is no query of a
                name that has a weight.

        >>> Engine().budget_rules().rates
        {}
        """
        options = self._options.services
        plans = [planned.physical for planned in self._plans]
        called = {service.pattern.service for plan in plans for service in plan.services}
        rates = {self._known(s, called): rate for s, rate in options.service_budgets().items()}
        names = {plan.name for plan in plans}
        weights = {self._known(q, names): weight for q, weight in options.weights().items()}
        refuse_unused_budgets(rates, called)
        refuse_unused_weights(weights, names, has_budget=bool(rates))
        return BudgetRules(rates, weights)

    def _known(self, name: str, known: Collection[str]) -> str:
        """Return the IRI of a name, which may be written without brackets."""
        return name if name in known else self._iri(name)

    def _start_clock(self) -> ReplayClock | None:
        self._replay_clock = None if self._speed is None else ReplayClock(self._speed)
        return self._replay_clock

    def check(self, *, sources: bool = True) -> None:
        """Check that queries, streams, services and options fit together; read and send nothing.

        Args:
            sources: Whether to check also that every stream has a source, and no other has one.

        Raises:
            BindingError: If a stream has no source, no query uses a binding, or the like.

        >>> Engine().check()
        Traceback (most recent call last):
        ...
        rsp_engine.errors.BindingError: no query is registered
        """
        plans = [planned.physical for planned in self._plans]
        if sources:
            check_bound_streams(plans, self._sources)
        services = [service for physical in plans for service in physical.services]
        refuse_unused_services(self._options.bound_services, services)
        self.budget_rules()
        refuse_unused_graphs(self._options, (planned.query for planned in self._plans))
        refuse_undeclared(self._options, (physical.operator for physical in plans))


Engine.__init__.__doc__ = described(EngineOptions)
