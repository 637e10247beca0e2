"""The service without HTTP: streams, queries and groups, and what changes them.

A query is registered under a name. What evaluates it is a job; equal queries share one. Jobs run in
groups. All of this is on disk before a request is answered, so that a server that is killed starts
again where it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsp_engine import __version__
from rsp_engine.errors import RspError
from rsp_engine.grammar.iris import absolute, full_iri
from rsp_engine.io.sources.live.log.declaration import (
    PUSHED,
    StreamDeclaration,
    read_declaration,
)
from rsp_engine.io.sources.live.log.extent import LogExtent, LogIndex
from rsp_engine.io.sources.spec import nearest
from rsp_engine.model.option import milliseconds
from rsp_engine.model.quantities import parse_duration
from rsp_engine.plan.explain.text import operator_of, window_text
from rsp_engine.server.data_folder import DataFolder
from rsp_engine.server.diagnostics import diagnostics_as_data
from rsp_engine.server.groups.bindings import Bindings
from rsp_engine.server.groups.committed_log import close_of
from rsp_engine.server.groups.group import WorkerGroup, WorkerLimits
from rsp_engine.server.groups.group_plan import (
    GroupPlan,
    PlannedJob,
    PlannedStream,
    read_plan,
    write_plan,
)
from rsp_engine.server.groups.places import complete_from, has_count_windows, is_kept, read_from
from rsp_engine.server.refusals import (
    ConflictError,
    MalformedError,
    NotFoundError,
    StoppingError,
)
from rsp_engine.server.registration import (
    Registration,
    are_equal,
    checked_name,
    fields_of,
    plan_query,
    read_registration,
)
from rsp_engine.server.streams import DeclaredStream, source_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.server.access import Access
    from rsp_engine.server.options import ServeOptions

__all__ = ["Job", "RegisteredQuery", "StreamService"]

_LOG = logging.getLogger("rsp")
_WATCH_S = 0.25
_TIDY_S = 10.0
_KEEP_ANSWERS_MS = 3650 * 24 * 3600 * 1000


@dataclass(slots=True)
class Job:
    """A query that is evaluated: for the first that was registered, and for all equal to it."""

    id: str
    query: Query
    bindings: Bindings
    group: str
    after: int | None
    """The windows that close after this are answered; None is before all."""
    stream: DeclaredStream
    """Its answers."""

    @property
    def name(self) -> str:
        """The name of the query in answers."""
        return self.query.physical.name


@dataclass(slots=True)
class RegisteredQuery:
    """A query under its name."""

    registration: Registration
    job: str
    after: int | None
    created: int
    is_paused: bool = False
    query: Query | None = field(default=None, repr=False)
    """Its plan."""

    @property
    def name(self) -> str:
        """The name by which requests call it."""
        return self.registration.name

    @property
    def plan(self) -> Query:
        """Its plan."""
        assert self.query is not None, "it was planned"  # noqa: S101
        return self.query

    def as_data(self) -> dict[str, Any]:
        """Return what is saved of it."""
        return {
            "name": self.name,
            "registration": self.registration.as_data(),
            "job": self.job,
            "after": self.after,
            "created": self.created,
            "is_paused": self.is_paused,
        }


class StreamService:
    """Streams, queries and groups; its methods may be called by several threads."""

    def __init__(self, options: ServeOptions, access: Access) -> None:
        """Open the data folder, and start what ran before. Raise if it cannot be used."""
        self.options = options
        self.access = access
        self.started = int(time.time() * 1000)
        self.is_stopping = False
        self._limits = WorkerLimits(options.memory, milliseconds(options.evaluation) / 1000)
        self._changing = threading.RLock()
        """Held by whatever changes streams, queries and groups; readers need no lock."""
        self._changed: list[Callable[[], None]] = []
        self._streams: dict[str, DeclaredStream] = {}
        self._queries: dict[str, RegisteredQuery] = {}
        self._jobs: dict[str, Job] = {}
        self._groups: dict[str, WorkerGroup] = {}
        self._data = DataFolder(Path(options.data))
        try:
            self._load()
        except BaseException:
            self.close()
            raise
        self._watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._watcher.start()

    # What is on disk

    def _load(self) -> None:
        """Open the streams and queries of the data folder, and start the groups."""
        for folder in self._data.streams():
            stream = DeclaredStream(read_declaration(folder), folder)
            stream.open()
            self._streams[stream.name] = stream
        for data in self._data.queries():
            registration = Registration.of_data(data["registration"])
            kept = {name: data[name] for name in ("job", "after", "created", "is_paused")}
            query = RegisteredQuery(registration, **kept)
            query.query = plan_query(registration.text, registration.bindings)
            if query.job not in self._jobs:
                self._jobs[query.job] = self._opened_job(query, query.query)
            self._queries[query.name] = query
        groups = {job.group for job in self._jobs.values()}
        for part, used in (
            ("streams", set(self._streams)),
            ("answers", set(self._jobs)),
            ("groups", groups),
        ):
            for folder in self._data.unused(part, used):  # left by a server that was killed
                self._data.remove(folder)
        for name in groups:
            group = self._group(name)
            try:
                if not self._is_planned(name):
                    self._check_places(self._active(name))
                    self._plan_group(name)
            except ConflictError as error:
                group.fail(error.message)
                continue
            if self._active(name):
                group.start()

    def _opened_job(self, query: RegisteredQuery, planned: Query) -> Job:
        registration = query.registration
        folder = self._data.answers(query.job)
        folder.mkdir(exist_ok=True)
        declaration = StreamDeclaration(
            query.job,
            planned.physical.feeds or f"urn:rsp-engine:answers:{query.job}",
            "query://",
            {"ahead": "36500d"},
            created=query.created,
        )
        declaration.write(folder)
        if planned.physical.feeds is not None and not (folder / "index.json").exists():
            self._note_beginning(folder, query.after, planned.physical)
        stream = DeclaredStream(declaration, folder)
        group = _group_id(registration, query.job)
        return Job(query.job, planned, registration.bindings, group, query.after, stream)

    def _note_beginning(self, folder: Path, after: int | None, plan: PhysicalPlan) -> None:
        """Let the readers of a stream of answers know since when it is complete."""
        known = self._kept([plan]).get(str(plan.feeds))
        since = [time for time in (after, known) if time is not None]
        if since:
            LogIndex(LogExtent(greatest=max(since))).write(folder)

    def _is_planned(self, name: str) -> bool:
        """Return whether the plan on disk is that of the queries that are registered."""
        try:
            plan = read_plan(self._data.group(name))
        except RspError:
            return False
        return {job.job for job in plan.jobs} == {job.id for job in self._active(name)} or (
            not self._active(name)
        )

    # Streams

    def streams(self) -> list[dict[str, Any]]:
        """Return all streams, as plain data."""
        makers = [job for job in list(self._jobs.values()) if job.query.physical.feeds]
        declared = [self._stream_data(stream) for stream in list(self._streams.values())]
        return declared + [self._made_stream(job) for job in makers if self._names(job)]

    def stream(self, name: str) -> dict[str, Any]:
        """Return a stream, as plain data."""
        job = self._job_that_makes(name)
        return self._stream_data(self._stream(name)) if job is None else self._made_stream(job)

    def _job_that_makes(self, name: str) -> Job | None:
        query = self._queries.get(name)
        job = None if query is None else self._jobs[query.job]
        has_stream = job is not None and job.query.physical.feeds and name not in self._streams
        return job if has_stream else None

    def _made_stream(self, job: Job) -> dict[str, Any]:
        data = job.stream.as_data()
        end, index = job.stream.reader.end(), job.stream.reader.index()
        number = job.stream.reader.first()
        greatest = job.stream.greatest()
        data |= {
            "elements": end.number,
            "messages": end.number,
            "watermark": greatest,
            "lag": None if greatest is None else int(time.time() * 1000) - greatest,
            "log": {
                "first": number,
                "last": end.number,
                "bytes": end.offset - job.stream.reader.starts()[0],
                "files": len(job.stream.reader.starts()),
                "least": None,
                "greatest": greatest,
                "kept_from": index.removed.greatest,
            },
            "keep": {"bytes": self.options.keep_answers, "time": _KEEP_ANSWERS_MS},
            "source": f"the answers of {self._names(job)[0]}",
            "name": self._names(job)[0],
        }
        return {**data, **self._reading(job.stream.iri, data["name"])}

    def _names(self, job: Job) -> list[str]:
        return [query.name for query in list(self._queries.values()) if query.job == job.id]

    def _stream_data(self, stream: DeclaredStream) -> dict[str, Any]:
        data = stream.as_data()
        reading = self._reading(stream.iri, stream.name)
        if data["elements"] is not None:
            reading["dead_letters"] += data["unreadable"]
        return {**data, **reading}

    def _reading(self, iri: str, name: str) -> dict[str, Any]:
        """Return who reads a stream, and what readers have set aside of it."""
        letters: Counter[str] = Counter()
        readers = [q for q in list(self._queries.values()) if iri in _streams_of(q.plan)]
        groups = {self._jobs[q.job].group for q in readers if q.job in self._jobs}
        for group in (self._groups[each] for each in groups if each in self._groups):
            for stream, kind, count in group.report.get("letters", ()):
                if stream == name:
                    letters[kind] += count
        return {
            "late": letters["late"],
            "dead_letters": sum(letters.values()),
            "readers": [query.name for query in readers],
        }

    def _stream(self, name: str) -> DeclaredStream:
        if name not in self._streams:
            hint = nearest(name, self._streams) or _listed("streams", self._streams)
            raise NotFoundError(f"there is no stream {name[:80]}", hint)
        return self._streams[name]

    def stream_iris(self) -> set[str]:
        """Return the IRIs of all streams, those of answers included."""
        made = {job.query.physical.feeds for job in list(self._jobs.values())}
        return {stream.iri for stream in list(self._streams.values())} | {*filter(None, made)}

    def declare(self, body: object) -> tuple[dict[str, Any], bool]:
        """Declare a stream; return it, and whether it is new."""
        declaration = self._declaration(body)
        with self._changing:
            self._check_not_stopping()
            known = self._streams.get(declaration.name)
            if known is not None:
                same = replace(known.declaration, created=declaration.created)
                if same != declaration:
                    hint = "choose another name, or delete that stream first"
                    raise ConflictError(f"there is another stream {declaration.name}", hint)
                return self._stream_data(known), False
            if declaration.name in self._queries:
                hint = "choose another name"
                raise ConflictError(f"there is a query {declaration.name}", hint)
            for other in (*self._streams.values(), *(job.stream for job in self._jobs.values())):
                if other.iri == declaration.iri:
                    message = f"the stream <{declaration.iri}> is declared as {other.name}"
                    raise ConflictError(message, "use that one, or choose another IRI")
            stream = self._created(declaration)
            self._streams[declaration.name] = stream
        return self._stream_data(stream), True

    def _created(self, declaration: StreamDeclaration) -> DeclaredStream:
        folder = self._data.stream(declaration.name)
        folder.mkdir()
        try:
            if declaration.template is not None:
                (folder / "template.ttl").write_text(declaration.template, encoding="utf-8")
            stream = DeclaredStream(declaration, folder)
            stream.open()
            declaration.write(folder)
        except BaseException:
            self._data.remove(folder)
            raise
        return stream

    def _declaration(self, body: object) -> StreamDeclaration:
        known = ("name", "iri", "source", "options", "template", "keep")
        data = fields_of(body, known, ("name", "iri"))
        name = checked_name(data["name"], "the name of a stream")
        options = data.get("options", {})
        if not isinstance(options, dict) or not all(isinstance(v, str) for v in options.values()):
            raise MalformedError("options must be an object whose values are texts")
        for option in ("template", "room"):
            if option in options:
                hint = 'the template is a member of its own: "template": TEXT' * (
                    option == "template"
                )
                raise MalformedError(f"a stream has no option {option}", hint or "use keep")
        iri, source, template = data["iri"], data.get("source", PUSHED), data.get("template")
        if not isinstance(iri, str) or not isinstance(source, str):
            raise MalformedError("iri and source must be texts")
        if template is not None and not isinstance(template, str):
            raise MalformedError("template must be text of Turtle")
        known_iri = full_iri(iri, {}) if iri else None
        if known_iri is None:
            raise MalformedError(f"{iri[:80]!r} is no IRI", "http://example.org/readings")
        if source != PUSHED:
            source = self.access.check_source(source)
        keep = self._keep(data.get("keep", {}))
        created = int(time.time() * 1000)
        return StreamDeclaration(
            name, absolute(known_iri), source, options, template, *keep, created
        )

    def _keep(self, value: object) -> tuple[int, int]:
        data = fields_of(value, ("bytes", "time"), ())
        most = data.get("bytes", self.options.keep_bytes)
        text = data.get("time", milliseconds(self.options.keep_time))
        try:
            longest = parse_duration(text) if isinstance(text, str) else text
        except ValueError as error:
            raise MalformedError(f"keep.time: {error}") from None
        for given, least in ((most, 4096), (longest, 1000)):
            if type(given) is not int or not least <= given < 1 << 53:
                raise MalformedError(
                    "keep must be bytes, from 4096 on, and a time, from 1s on",
                    '{"bytes": 1073741824, "time": "7d"}',
                )
        return most, longest

    def undeclare(self, name: str) -> None:
        """Delete a stream that no query reads."""
        with self._changing:
            stream = self._stream(name)
            readers = self._reading(stream.iri, name)["readers"]
            if readers:
                hint = f"delete {readers[0]} first"
                raise ConflictError(f"queries read {name}: {', '.join(readers)}", hint)
            del self._streams[name]
            stream.close()
            self._data.remove(stream.folder)

    def pushed_to(self, name: str) -> DeclaredStream:
        """Return a stream to push to."""
        self._check_not_stopping()
        job = self._job_that_makes(name)
        return self._stream(name) if job is None else job.stream

    def letters(self, name: str, count: int) -> list[dict[str, Any]]:
        """Return the last dead letters of a stream: its own, and those of its readers."""
        stream = self.pushed_to(name)
        groups = {
            self._jobs[query.job].group: query.name
            for query in list(self._queries.values())
            if stream.iri in _streams_of(query.plan)
        }
        found = stream.letters(count)
        for group, reader in groups.items():
            found += _letters_of(self._data.group(group) / "letters", stream.name, reader, count)
        return sorted(found, key=lambda letter: letter["arrival"] or 0)[-count:]

    # Queries

    def queries(self) -> list[dict[str, Any]]:
        """Return all queries, as plain data."""
        return [self._query_data(query) for query in list(self._queries.values())]

    def query(self, name: str) -> dict[str, Any]:
        """Return a query, as plain data."""
        return self._query_data(self.registered(name))

    def registered(self, name: str) -> RegisteredQuery:
        """Return a query by its name."""
        if name not in self._queries:
            hint = nearest(name, self._queries) or _listed("queries", self._queries)
            raise NotFoundError(f"there is no query {name[:80]}", hint)
        return self._queries[name]

    def answers_of(self, name: str) -> tuple[RegisteredQuery, Job]:
        """Return a query, and the job that has its answers."""
        query = self.registered(name)
        return query, self._jobs[query.job]

    def state(self, name: str) -> tuple[str, str | None]:
        """Return the state of a query, and the reason for it."""
        query = self._queries.get(name)
        if query is None:
            return "deleted", None
        if query.is_paused:
            return "paused", None
        group = self._groups[self._jobs[query.job].group]
        return ("starting" if group.state == "stopped" else group.state), group.reason

    def register(self, body: object) -> tuple[dict[str, Any], bool]:
        """Register a query; return it, and whether it is new."""
        registration, planned = read_registration(body, self.access)
        with self._changing:
            self._check_not_stopping()
            known = self._queries.get(registration.name)
            if known is not None:
                if known.registration != registration:
                    hint = "choose another name, or delete that query first"
                    raise ConflictError(f"there is another query {registration.name}", hint)
                return self._query_data(known), False
            self._check_fits(registration, planned)
            created = int(time.time() * 1000)
            after = self._after(registration, planned)
            query = RegisteredQuery(registration, "", after, created, query=planned)
            equal = self._equal_job(registration, planned, after)
            if equal is not None:
                query.job = equal.id
                self._queries[query.name] = query
                self._data.write_query(query.name, query.as_data())
                return self._query_data(query), True
            self._add_job(query, planned)
            return self._query_data(query), True

    def _add_job(self, query: RegisteredQuery, planned: Query) -> None:
        """Evaluate a query that no other one is equal to."""
        query.job = self._free_id(query.name)
        job = self._opened_job(query, planned)
        group = self._group(job.group)
        self._jobs[job.id] = job
        self._queries[query.name] = query
        try:
            self._replan(job.group)
            self._data.write_query(query.name, query.as_data())
        except BaseException:
            del self._jobs[job.id], self._queries[query.name]
            self._forget_job(job)
            raise
        group.start()

    def _free_id(self, name: str) -> str:
        taken, number, free = set(self._jobs), 2, name
        while free in taken:
            free, number = f"{name}-{number}", number + 1
        return free

    def _check_fits(self, registration: Registration, planned: Query) -> None:
        """Refuse a query whose streams are not declared, or which does not fit its group."""
        physical = planned.physical
        if registration.name in self._streams:
            raise ConflictError(f"there is a stream {registration.name}", "choose another name")
        known = {stream.iri: stream for stream in self._streams.values()}
        made = {
            job.query.physical.feeds: job
            for job in self._jobs.values()
            if job.query.physical.feeds is not None
        }
        for scan in physical.scans:
            if scan.stream not in known and scan.stream not in made:
                raise MalformedError(
                    f"stream <{scan.stream}> is not declared",
                    nearest(scan.stream, [*known, *made]) or "declare it first: POST /streams",
                )
        if physical.feeds in known:
            hint = "choose another IRI in REGISTER"
            raise ConflictError(f"<{physical.feeds}> is a declared stream", hint)
        maker = made.get(physical.feeds or "")
        if maker is not None and not are_equal(maker.query.physical, physical):
            hint = "choose another IRI in REGISTER"
            raise ConflictError(f"another query makes the stream <{physical.feeds}>", hint)
        if registration.group is not None:
            self._check_group(registration, planned)

    def _check_group(self, registration: Registration, planned: Query) -> None:
        name = f"g-{registration.group}"
        if has_count_windows(planned.physical):
            raise MalformedError(
                "windows that count elements cannot share a group",
                "they count from where their query begins to read: leave out group",
            )
        for job in self._jobs.values():
            if job.group != name:
                continue
            if job.name == planned.physical.name:
                hint = "give each a name with REGISTER"
                raise ConflictError(f"two queries of the group are called {job.name}", hint)
            for what, own in asdict(registration.bindings).items():
                other = asdict(job.bindings)[what]
                clash = own != other if what == "options" else _clash(own, other)
                if clash:
                    hint = "give it the same, or another group"
                    raise ConflictError(f"the group runs with other {what}", hint)

    def _equal_job(
        self, registration: Registration, planned: Query, after: int | None
    ) -> Job | None:
        """Return the job that evaluates an equal query from the same start, if there is one."""
        for query in self._queries.values():
            job, other = self._jobs[query.job], query.registration
            is_same = (
                other.group == registration.group
                and other.bindings == registration.bindings
                and are_equal(job.query.physical, planned.physical)
                and not query.is_paused
            )
            if not is_same or has_count_windows(planned.physical):
                continue
            covers = job.after is None or (after is not None and job.after <= after)
            if other.start == registration.start or (registration.start == "now" and covers):
                return job
        return None

    def _after(self, registration: Registration, planned: Query) -> int | None:
        """Return after which instant windows close that the query answers."""
        match registration.start:
            case "earliest":
                return None
            case int(instant):
                return instant
            case _:
                return self._now(registration, planned)

    def _now(self, registration: Registration, planned: Query) -> int | None:
        """Return the last instant at which all windows are closed that close there."""
        logs = {s.iri: s for s in self._streams.values() if s.has_log}
        logs |= {job.stream.iri: job.stream for job in self._jobs.values()}
        scans = planned.physical.scans
        times = [logs[scan.stream].greatest() for scan in scans if scan.stream in logs]
        known = [time for time in times if time is not None]
        if not known or len(known) < len(times):
            return None
        delay = milliseconds(registration.bindings.options.get("max_delay", 0))
        return min(known) - delay - (planned.physical.bounds == "(]")

    def delete(self, name: str) -> None:
        """Delete a query; what evaluates it goes on while others are equal to it."""
        with self._changing:
            query = self.registered(name)
            job = self._jobs[query.job]
            others = [q for q in self._queries.values() if q.job == job.id and q is not query]
            feeds = job.query.physical.feeds
            if not others and feeds is not None:
                readers = [n for n in self._reading(feeds, "")["readers"] if n != name]
                if readers:
                    hint = f"delete {readers[0]} first"
                    raise ConflictError(f"queries read its stream: {', '.join(readers)}", hint)
            self._data.remove_query(name)
            del self._queries[name]
            if not others:
                del self._jobs[job.id]
                self._forget_job(job)
            elif not query.is_paused and all(other.is_paused for other in others):
                self._replan_and_start(job.group)
        self._tell()

    def _forget_job(self, job: Job) -> None:
        """Stop evaluating a job, and remove its answers."""
        rest = [other for other in self._jobs.values() if other.group == job.group]
        if rest:
            self._replan_and_start(job.group)
        else:
            group = self._groups.pop(job.group, None)
            if group is not None:
                group.stop()
            self._data.remove(self._data.group(job.group))
        job.stream.close()
        self._data.remove(job.stream.folder)

    def pause(self, name: str) -> dict[str, Any]:
        """Stop a query after the current micro-batch, until it is resumed."""
        return self._set_paused(name, is_paused=True)

    def resume(self, name: str) -> dict[str, Any]:
        """Go on with a query where it was paused, or has failed."""
        return self._set_paused(name, is_paused=False)

    def _set_paused(self, name: str, *, is_paused: bool) -> dict[str, Any]:
        with self._changing:
            self._check_not_stopping()
            query = self.registered(name)
            job = self._jobs[query.job]
            was_active = {each.id for each in self._active(job.group)}
            if query.is_paused != is_paused:
                query.is_paused = is_paused
                self._data.write_query(name, query.as_data())
            if {each.id for each in self._active(job.group)} != was_active:
                self._replan_and_start(job.group)
            elif not is_paused and self._groups[job.group].state in ("failed", "finished"):
                self._groups[job.group].start()
            data = self._query_data(query)
        self._tell()
        return data

    # Groups

    def _group(self, name: str) -> WorkerGroup:
        if name not in self._groups:
            folder = self._data.group(name)
            folder.mkdir(exist_ok=True)
            self._groups[name] = WorkerGroup(name, folder, self._limits, self._tell)
        return self._groups[name]

    def _active(self, group: str) -> list[Job]:
        """Return the jobs of a group that are wanted, in the order in which they read each other.

        A job is wanted while one of its queries is not paused.
        """
        wanted = {query.job for query in self._queries.values() if not query.is_paused}
        return _ordered(j for j in self._jobs.values() if j.group == group and j.id in wanted)

    def _replan_and_start(self, name: str) -> None:
        """Let a group go on with the jobs that are wanted now."""
        self._replan(name)
        if self._active(name):
            self._groups[name].start()

    def _replan(self, name: str) -> None:
        """Stop a group, and plan it anew if its jobs are others now.

        The new plan begins where each job has answered last: what its next windows hold is read
        again. A group that only pauses keeps its checkpoint.
        """
        is_planned = self._is_planned(name)
        if not is_planned:
            self._check_places(self._active(name))
        self._groups[name].stop()
        if not is_planned:
            self._plan_group(name)

    def _plan_group(self, name: str) -> None:
        jobs, folder = self._active(name), self._data.group(name)
        if not jobs:
            return
        planned = [self._planned_job(job) for job in jobs]
        after = {job.name: job.after for job in planned}
        streams = self._planned_streams(jobs, after)
        prefixes: dict[str, str] = {}
        for job in jobs:
            prefixes |= job.query.query.prefixes
        old = {path.name for path in folder.glob("checkpoint-*")}
        number = max((int(text.rpartition("-")[2]) for text in old), default=0) + 1
        plan = GroupPlan(
            f"checkpoint-{number}", planned, streams, _merged(j.bindings for j in jobs), prefixes
        )
        write_plan(folder, plan)
        for text in old:
            self._data.remove(folder / text)

    def _planned_job(self, job: Job) -> PlannedJob:
        reader = job.stream.reader
        end = reader.end()
        last = reader.last(1)
        after = close_of(last[0]) if last else job.after
        return PlannedJob(
            job.id,
            job.name,
            self._text(job),
            str(job.stream.folder),
            after,
            [end.offset, end.number] if end.number else None,
            [self.options.keep_answers, _KEEP_ANSWERS_MS],
        )

    def _text(self, job: Job) -> str:
        return next(q.registration.text for q in self._queries.values() if q.job == job.id)

    def _planned_streams(
        self, jobs: Sequence[Job], after: dict[str, int | None]
    ) -> list[PlannedStream]:
        own = {job.query.physical.feeds for job in jobs}
        plans = [job.query.physical for job in jobs]
        starts = read_from(plans, after)
        logs = [*self._streams.values(), *(job.stream for job in self._jobs.values())]
        by_iri = {stream.iri: stream for stream in logs}
        is_now = all(
            q.registration.start == "now"
            for q in self._queries.values()
            if q.job in {job.id for job in jobs}
        )
        read = dict.fromkeys(scan.stream for plan in plans for scan in plan.scans)
        return [
            _planned_stream(by_iri[iri], starts[iri], is_now=is_now)
            for iri in read
            if iri not in own
        ]

    def _kept(self, plans: Sequence[PhysicalPlan]) -> dict[str, int]:
        """Return since when each stream that queries read is complete, if it is not whole."""
        logs = [*self._streams.values(), *(job.stream for job in self._jobs.values())]
        read = {scan.stream for plan in plans for scan in plan.scans}
        kept = {s.iri: s.reader.index().removed.greatest for s in logs if s.iri in read}
        return complete_from(plans, {iri: at for iri, at in kept.items() if at is not None})

    def _check_places(self, jobs: Sequence[Job]) -> None:
        """Refuse to go on with queries whose next windows are no longer kept."""
        plans = [job.query.physical for job in jobs]
        complete = self._kept(plans)
        for job in jobs:
            last = job.stream.reader.last(1)
            if last and not is_kept(job.query.physical, close_of(last[0]), complete):
                raise ConflictError(
                    f"the place of {self._names(job)[0]} is gone: the elements of its next windows"
                    " are no longer kept",
                    "delete it and register it again, or keep more of its streams",
                )

    # The state of queries

    def _query_data(self, query: RegisteredQuery) -> dict[str, Any]:
        registration, job = query.registration, self._jobs[query.job]
        planned = query.plan
        physical = planned.physical
        group = self._groups[job.group]
        state, reason = self.state(query.name)
        equal = [name for name in self._names(job) if name != query.name]
        by_iri = {s.iri: s.name for s in self._streams.values()}
        for other in self._jobs.values():
            if other.query.physical.feeds is not None:
                by_iri[other.query.physical.feeds] = self._names(other)[0]
        content, modifiers = physical.operator.query, planned.query.form.modifiers
        reader = job.stream.reader
        first, last = reader.first(), reader.end().number
        return {
            "name": query.name,
            "iri": physical.name,
            "text": registration.text,
            "form": content.form,
            "r2s": physical.r2s,
            "operator": operator_of(planned)[0],
            "ranked": bool(modifiers.order_by) and modifiers.limit is not None,
            "limit": None if modifiers.limit is None else modifiers.limit.value,
            "variables": list(content.variables),
            "prefixes": dict(planned.query.prefixes),
            "group": registration.group or query.name,
            "start": {"requested": registration.start, "after": query.after},
            "options": dict(registration.bindings.options),
            "services": [
                {
                    "service": service.pattern.service,
                    "url": registration.bindings.services.get(service.pattern.service),
                    "policy": service.policy.name,
                    "budget": service.options.most_keys if service.policy.is_bounded else None,
                }
                for service in physical.services
            ],
            "windows": [
                {"name": scan.window, "stream": scan.stream, "size": window_text(scan)}
                for scan in physical.scans
            ],
            "streams": [by_iri.get(iri, iri) for iri in _streams_of(planned)],
            "feeds": physical.feeds,
            "created": query.created,
            "state": state,
            "reason": reason,
            "equal_to": equal[0] if equal else None,
            "warnings": diagnostics_as_data(planned.warnings, registration.text, "warning"),
            "answers": {
                "first": first if first <= last else None,
                "last": last or None,
                "bytes": reader.end().offset - reader.starts()[0],
            },
            "status": self._status(group, job),
        }

    def _status(self, group: WorkerGroup, job: Job) -> dict[str, Any]:
        report = group.report
        own = report.get("queries", {}).get(job.name, {})
        counts = report.get("counts", {})
        letters = counts.get("dead", {})
        evaluation = own.get("evaluation", {"count": 0, "total": 0.0})
        watermark = own.get("watermark")
        names = "windows rows exact budget_spent requests cold_misses stale".split()
        rate, answer_rate = group.rates if group.state == "running" else (0.0, 0.0)
        return {
            **{name: own.get(name, 0) for name in names},
            "elements": counts.get("elements", 0),
            "triples": counts.get("triples", 0),
            "between_windows": counts.get("between_windows", 0),
            "late": letters.get("late", 0),
            "dead_letters": letters,
            "watermark": watermark,
            "lag": None if watermark is None else int(time.time() * 1000) - watermark,
            "rate": rate,
            "answer_rate": answer_rate,
            "last_window": own.get("last_window"),
            "last_exact": own.get("last_exact"),
            "refreshed": own.get("refreshed", {}),
            "faults": own.get("faults", {}),
            "evaluation": {
                "count": evaluation["count"],
                "mean": evaluation["total"] / evaluation["count"] if evaluation["count"] else 0.0,
                "last": own.get("last_seconds"),
            },
            "memory": group.memory,
            "cpu": report.get("cpu"),
            "restarts": group.restarts,
            "pid": group.pid,
            "reported": None if group.reported is None else int(group.reported * 1000),
        }

    def health(self) -> dict[str, Any]:
        """Return the state of the service in short."""
        states = Counter(self.state(name)[0] for name in list(self._queries))
        return {
            "status": "stopping" if self.is_stopping else "ok",
            "version": __version__,
            "started": self.started,
            "streams": len(self._streams),
            "queries": dict(states),
        }

    # Life

    def when_changed(self, call: Callable[[], None]) -> None:
        """Call a function whenever the state of a query may have changed."""
        self._changed.append(call)

    def _tell(self) -> None:
        for call in self._changed:
            call()

    def _check_not_stopping(self) -> None:
        if self.is_stopping:
            raise StoppingError("the server is stopping", "ask again when it is back")

    def _watch(self) -> None:
        """Watch over the groups, and tidy up the logs."""
        tidied = time.monotonic()
        while not self.is_stopping:
            time.sleep(_WATCH_S)
            for group in list(self._groups.values()):
                group.watch()
            if time.monotonic() > tidied + _TIDY_S:
                tidied = time.monotonic()
                for stream in list(self._streams.values()):
                    stream.tidy()

    def close(self) -> None:
        """Stop all groups after their micro-batches, and close all logs."""
        self.is_stopping = True
        self._tell()
        stopping = [
            threading.Thread(target=group.stop, daemon=True) for group in self._groups.values()
        ]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        for stream in self._streams.values():
            stream.close()
        self._data.close()


def _group_id(registration: Registration, job: str) -> str:
    return f"q-{job}" if registration.group is None else f"g-{registration.group}"


def _streams_of(query: Query) -> list[str]:
    return list(dict.fromkeys(scan.stream for scan in query.physical.scans))


def _listed(what: str, names: Iterable[str]) -> str:
    listed = ", ".join(sorted(names))
    return f"the {what} are {listed}" if listed else f"there are no {what}"


def _clash(one: Any, other: Any) -> bool:  # noqa: ANN401 - texts or mappings
    if not isinstance(one, dict):
        return False
    return any(one[key] != other[key] for key in one.keys() & other.keys())


def _merged(bindings: Iterable[Bindings]) -> Bindings:
    merged = Bindings()
    for each in bindings:
        merged = Bindings(
            each.options,
            {**merged.services, **each.services},
            {**merged.modified, **each.modified},
            {**merged.graphs, **each.graphs},
            tuple(dict.fromkeys((*merged.functions, *each.functions))),
            {**merged.ranges, **each.ranges},
        )
    return merged


def _ordered(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs so that each follows those whose answers it reads."""
    left, ordered = list(jobs), []
    while left:
        made = {job.query.physical.feeds for job in left}
        ready = [j for j in left if not made & set(_streams_of(j.query))] or left
        ordered += ready
        left = [job for job in left if job not in ready]
    return ordered


def _planned_stream(stream: DeclaredStream, since: int | None, *, is_now: bool) -> PlannedStream:
    """Return where a stream is read from, so that all elements since a time are read."""
    declaration = stream.declaration
    if not stream.has_log:
        source = source_text(declaration, stream.folder)
        if declaration.kind == "kafka" and is_now:
            mark = "&" if "?" in source else "?"
            source += f"{mark}start=latest"
        return PlannedStream(stream.iri, stream.name, source=source)
    reader = stream.reader
    kept = reader.index().removed.greatest
    offset = reader.starts()[0] if since is None else reader.offset_for(since)
    return PlannedStream(stream.iri, stream.name, str(stream.folder), offset, kept)


def _letters_of(folder: Path, stream: str, query: str, count: int) -> Iterator[dict[str, Any]]:
    import base64
    import json

    from rsp_engine.io.sources.live.log.log_reader import LogReader

    reader = LogReader(folder, "letters")
    try:
        records = reader.last(10_000) if folder.is_dir() else []
    finally:
        reader.close()
    found = []
    for record in records:
        letter = json.loads(record.message.payload)
        if letter["stream"] == stream:
            found.append((record, letter))
    for record, letter in found[-count:]:
        raw = letter.get("raw")
        data = base64.b64decode(letter["raw_base64"]) if raw is None else raw.encode()
        yield {
            "number": letter["position"],
            "arrival": record.arrival,
            "kind": letter["kind"],
            "reason": letter["reason"],
            "bytes": len(data),
            "payload": data[: 64 << 10].decode(errors="replace"),
            "query": query,
        }
