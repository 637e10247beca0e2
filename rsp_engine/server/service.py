"""The service without HTTP: it changes streams and queries, and keeps their groups running.

All is on disk before a request is answered, so that a server that is killed starts again where it
was. A change that fails leaves things as they were.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsp_engine import __version__
from rsp_engine.io.sources.live.log.declaration import PUSHED, StreamDeclaration, read_declaration
from rsp_engine.io.sources.live.log.extent import LogExtent, LogIndex
from rsp_engine.model.option import milliseconds
from rsp_engine.server.admission import (
    check_fits,
    equal_job,
    free_job_id,
    group_id,
    start_instant,
)
from rsp_engine.server.catalog import Catalog, Job, RegisteredQuery
from rsp_engine.server.data_folder import DataFolder
from rsp_engine.server.declaration import check_is_new, read_stream
from rsp_engine.server.descriptions import (
    describe_answers,
    describe_registered,
    describe_stream,
    letters_of,
    query_state,
)
from rsp_engine.server.groups.group import WorkerGroup, WorkerLimits
from rsp_engine.server.planning import check_places, is_planned, kept_from, plan_group
from rsp_engine.server.refusals import ConflictError, StoppingError
from rsp_engine.server.registration import Registration, plan_query, read_registration
from rsp_engine.server.streams import DeclaredStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.server.access import Access
    from rsp_engine.server.options import ServeOptions

__all__ = ["StreamService"]

_WATCH_S = 0.25
_TIDY_S = 10.0


class StreamService:
    """Streams, queries and groups; its methods may be called by several threads."""

    def __init__(self, options: ServeOptions, access: Access) -> None:
        """Open the data folder, and start what ran before. Raise if it cannot be used."""
        self.options = options
        self.access = access
        self.started = int(time.time() * 1000)
        self.is_stopping = False
        self.catalog = Catalog()
        self._limits = WorkerLimits(options.memory, milliseconds(options.evaluation) / 1000)
        self._changing = threading.RLock()
        """Held by whatever changes the catalog; readers need no lock."""
        self._changed: list[Callable[[], None]] = []
        self._data = DataFolder(Path(options.data))
        try:
            self._load()
        except BaseException:
            self.close()
            raise
        self._watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._watcher.start()

    def _load(self) -> None:
        """Open the streams and queries of the data folder, and start the groups."""
        catalog = self.catalog
        for folder in self._data.streams():
            declaration = read_declaration(folder)
            if declaration.source != PUSHED:
                self.access.check_source(declaration.source)
            stream = DeclaredStream(declaration, folder)
            stream.open()
            catalog.streams[stream.name] = stream
        for data in self._data.queries():
            registration = Registration.of_data(data["registration"])
            self.access.check_bindings(registration.bindings)
            plan = plan_query(registration.text, registration.bindings)
            after, created = data["after"], data["created"]
            job = catalog.job(data["job"]) or self._job(
                data["job"], registration, plan, after, created
            )
            catalog.queries[data["name"]] = RegisteredQuery(
                registration, plan, job, after, created, data["is_paused"]
            )
        groups = self._groups()
        for part, used in (
            ("streams", {stream.name for stream in catalog.streams.values()}),
            ("answers", {job.id for job in catalog.jobs()}),
            ("groups", {group.name for group in groups}),
        ):
            for folder in self._data.unused(part, used):  # left by a server that was killed
                self._data.remove(folder)
        for group in groups:
            try:
                self._run(group)
            except ConflictError as error:
                group.fail(error.message)

    # Streams

    def streams(self) -> list[dict[str, Any]]:
        """Return all streams, as plain data."""
        catalog = self.catalog
        declared = [describe_stream(each, catalog) for each in list(catalog.streams.values())]
        makers = [job for job in catalog.jobs() if job.feeds is not None]
        made = [(job, query) for job in makers for query in catalog.queries_of(job)[:1]]
        return declared + [self._made_stream(job, query.name) for job, query in made]

    def stream(self, name: str) -> dict[str, Any]:
        """Return a stream, as plain data."""
        job = self._maker(name)
        if job is not None:
            return self._made_stream(job, name)
        return describe_stream(self.catalog.stream(name), self.catalog)

    def _made_stream(self, job: Job, name: str) -> dict[str, Any]:
        return describe_answers(job, name, self.catalog, self.options.keep_answers)

    def _maker(self, name: str) -> Job | None:
        return None if name in self.catalog.streams else self.catalog.made(name)

    def log_of(self, name: str) -> DeclaredStream:
        """Return a stream: a declared one, or the answers of a query."""
        job = self._maker(name)
        return self.catalog.stream(name) if job is None else job.stream

    def pushed_to(self, name: str) -> DeclaredStream:
        """Return a stream to push to."""
        self._check_not_stopping()
        return self.log_of(name)

    def letters(self, name: str, count: int) -> list[dict[str, Any]]:
        """Return the last dead letters of a stream: its own, and those of its readers."""
        return letters_of(self.log_of(name), self.catalog, count)

    def declare(self, body: object) -> tuple[dict[str, Any], bool]:
        """Declare a stream; return it, and whether it is new."""
        declaration = read_stream(body, self.access, self.options, int(time.time() * 1000))
        with self._changing:
            self._check_not_stopping()
            is_new = check_is_new(declaration, self.catalog)
            if is_new:
                self.catalog.streams[declaration.name] = self._created(declaration)
            stream = self.catalog.streams[declaration.name]
        return describe_stream(stream, self.catalog), is_new

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

    def undeclare(self, name: str) -> None:
        """Delete a stream that no query reads."""
        with self._changing:
            self._check_not_stopping()
            stream = self.catalog.stream(name)
            readers = [query.name for query in self.catalog.readers(stream.iri)]
            if readers:
                hint = f"delete {readers[0]} first"
                raise ConflictError(f"queries read {name}: {', '.join(readers)}", hint)
            del self.catalog.streams[name]
            stream.close()
            self._data.remove(stream.folder)

    # Queries

    def queries(self) -> list[dict[str, Any]]:
        """Return all queries, as plain data."""
        queries = list(self.catalog.queries.values())
        return [describe_registered(query, self.catalog) for query in queries]

    def query(self, name: str) -> dict[str, Any]:
        """Return a query, as plain data."""
        return describe_registered(self.catalog.query(name), self.catalog)

    def state(self, query: RegisteredQuery) -> tuple[str, str | None]:
        """Return the state of a query, and the reason for it."""
        is_there = self.catalog.queries.get(query.name) is query
        return query_state(query) if is_there else ("deleted", None)

    def register(self, body: object) -> tuple[dict[str, Any], bool]:
        """Register a query; return it, and whether it is new."""
        registration, plan = read_registration(body, self.access)
        with self._changing:
            self._check_not_stopping()
            known = self.catalog.queries.get(registration.name)
            if known is not None:
                if known.registration != registration:
                    hint = "choose another name, or delete that query first"
                    raise ConflictError(f"there is another query {registration.name}", hint)
                return describe_registered(known, self.catalog), False
            after = start_instant(self.catalog, registration, plan)
            equal = equal_job(self.catalog, registration, plan, after)
            check_fits(self.catalog, registration, plan, is_attached=equal is not None)
            created = int(time.time() * 1000)
            job = equal
            if job is None:
                free = free_job_id(self.catalog, registration.name)
                job = self._job(free, registration, plan, after, created)
            query = RegisteredQuery(registration, plan, job, after, created)
            self._add(query, is_attached=equal is not None)
        return describe_registered(query, self.catalog), True

    def _add(self, query: RegisteredQuery, *, is_attached: bool) -> None:
        """Add a query, and let its group evaluate it; or leave everything as it was."""
        self.catalog.queries[query.name] = query
        try:
            self._data.write_query(query.name, query.as_data())
            if not is_attached:
                self._run(query.job.group)
        except BaseException:
            del self.catalog.queries[query.name]
            self._data.remove_query(query.name)
            if not is_attached:
                self._forget(query.job)
            raise

    def _job(
        self, ident: str, registration: Registration, plan: Query, after: int | None, created: int
    ) -> Job:
        """Return a new job, whose answers have a folder."""
        folder = self._data.answers(ident)
        folder.mkdir(exist_ok=True)
        feeds = plan.physical.feeds
        declaration = StreamDeclaration(
            ident,
            feeds or f"urn:rsp-engine:answers:{ident}",
            "query://",
            {"ahead": "36500d"},
            created=created,
        )
        if not (folder / "stream.json").exists():
            declaration.write(folder)
        if feeds is not None and not (folder / "index.json").exists():
            known = kept_from([plan.physical], self.catalog.logs()).get(feeds)
            since = [time for time in (after, known) if time is not None]
            if since:  # readers of the answers learn since when these are complete
                LogIndex(LogExtent(greatest=max(since))).write(folder)
        group = self._group(group_id(registration, ident))
        return Job(ident, registration, plan, group, after, DeclaredStream(declaration, folder))

    def delete(self, name: str) -> None:
        """Delete a query; what evaluates it goes on while others are equal to it."""
        with self._changing:
            self._check_not_stopping()
            query = self.catalog.query(name)
            job = query.job
            is_last = self.catalog.queries_of(job) == [query]
            readers = [q.name for q in self.catalog.readers(job.stream.iri) if q is not query]
            if is_last and readers:
                hint = f"delete {readers[0]} first"
                raise ConflictError(f"queries read its stream: {', '.join(readers)}", hint)
            queries = dict(self.catalog.queries)
            del self.catalog.queries[name]
            try:
                self._run(job.group)
            except BaseException:
                self.catalog.queries = queries
                raise
            self._data.remove_query(name)
            if is_last:
                self._forget(job)
        self._tell()

    def _forget(self, job: Job) -> None:
        """Remove what is left of a job that no query has any more."""
        if not self.catalog.jobs_of(job.group.name):
            job.group.stop()
            self._data.remove(job.group.folder)
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
            query = self.catalog.query(name)
            before, query.is_paused = query.is_paused, is_paused
            try:
                self._data.write_query(name, query.as_data())
                self._run(query.job.group)
            except BaseException:
                query.is_paused = before
                with suppress(OSError):
                    self._data.write_query(name, query.as_data())
                raise
            data = describe_registered(query, self.catalog)
        self._tell()
        return data

    # Groups

    def _groups(self) -> list[WorkerGroup]:
        return list(dict.fromkeys(job.group for job in self.catalog.jobs()))

    def _group(self, name: str) -> WorkerGroup:
        """Return the group of a name; it is new if no job is in it."""
        known = next((group for group in self._groups() if group.name == name), None)
        if known is not None:
            return known
        folder = self._data.group(name)
        folder.mkdir(exist_ok=True)
        return WorkerGroup(name, folder, self._limits, self._tell)

    def _run(self, group: WorkerGroup) -> None:
        """Let a group run the jobs that are wanted of it now.

        A group that only pauses, or goes on, keeps its checkpoint. Otherwise it is stopped and
        planned anew; if that fails, it goes on with the plan that it had.
        """
        jobs = self.catalog.wanted(group.name)
        if not jobs:
            group.stop()
            return
        if not is_planned(group.folder, jobs):
            logs = self.catalog.logs()
            for iri in {iri for job in jobs for iri in job.reads if iri in logs}:
                logs[iri].tidy()  # so that what is planned is not removed at once
            check_places(jobs, logs)
            had_run = group.is_active
            group.stop()
            try:
                old = plan_group(group.folder, jobs, logs, self.options.keep_answers)
            except BaseException:
                if had_run:
                    group.start()
                raise
            for checkpoint in old:
                self._data.remove(checkpoint)
        group.start()

    # Life

    def health(self) -> dict[str, Any]:
        """Return the state of the service in short."""
        states = Counter(query_state(query)[0] for query in list(self.catalog.queries.values()))
        return {
            "status": "stopping" if self.is_stopping else "ok",
            "version": __version__,
            "started": self.started,
            "streams": len(self.catalog.streams),
            "queries": dict(states),
        }

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
            for group in self._groups():
                group.watch()
            if time.monotonic() > tidied + _TIDY_S:
                tidied = time.monotonic()
                for stream in list(self.catalog.streams.values()):
                    stream.tidy()

    def close(self) -> None:
        """Stop all groups after their micro-batches, and close all logs."""
        self.is_stopping = True
        self._tell()
        stopping = [threading.Thread(target=g.stop, daemon=True) for g in self._groups()]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        for stream in self.catalog.streams.values():
            stream.close()
        self._data.close()
