"""The catalog: the streams and queries of a server, and what follows from them.

A query is registered under a name. What evaluates it is a job; equal queries share one. A job runs
in a group, and its answers are a stream; those of a CONSTRUCT can be read by other queries.

    name -> RegisteredQuery -> Job -> WorkerGroup
    name -> DeclaredStream      |
    IRI  -> DeclaredStream <----'

One thread at a time changes the catalog. Others may read it meanwhile: what they hold stays whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rsp_engine.io.sources.spec import nearest
from rsp_engine.server.refusals import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.server.groups.group import WorkerGroup
    from rsp_engine.server.registration import Registration
    from rsp_engine.server.streams import DeclaredStream

__all__ = ["Catalog", "Job", "RegisteredQuery", "read_order"]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Job:
    """A query that is evaluated: for the first that was registered, and for all equal to it."""

    id: str
    registration: Registration
    plan: Query
    group: WorkerGroup
    after: int | None
    """The windows that close after this are answered; None is before all."""
    stream: DeclaredStream
    """Its answers."""

    @property
    def name(self) -> str:
        """The name of the query in answers."""
        return self.plan.physical.name

    @property
    def feeds(self) -> str | None:
        """The IRI of its answers as a stream, if they are one."""
        return self.plan.physical.feeds

    @property
    def reads(self) -> Sequence[str]:
        """The IRIs of the streams that it reads."""
        return list(dict.fromkeys(scan.stream for scan in self.plan.physical.scans))


@dataclass(slots=True, eq=False)
class RegisteredQuery:
    """A query under its name."""

    registration: Registration
    plan: Query
    job: Job
    after: int | None
    """Its answers are those of the job that close after this; None is before all."""
    created: int
    is_paused: bool = False

    @property
    def name(self) -> str:
        """The name by which requests call it."""
        return self.registration.name

    def as_data(self) -> dict[str, Any]:
        """Return what is saved of it."""
        return {
            "name": self.name,
            "registration": self.registration.as_data(),
            "job": self.job.id,
            "after": self.after,
            "created": self.created,
            "is_paused": self.is_paused,
        }


@dataclass(slots=True)
class Catalog:
    """The streams and queries of a server, by name."""

    streams: dict[str, DeclaredStream] = field(default_factory=dict)
    queries: dict[str, RegisteredQuery] = field(default_factory=dict)

    def stream(self, name: str) -> DeclaredStream:
        """Return a declared stream; refuse a name that none has."""
        stream = self.streams.get(name)
        if stream is None:
            raise _unknown("stream", name, self.streams)
        return stream

    def query(self, name: str) -> RegisteredQuery:
        """Return a query; refuse a name that none has."""
        query = self.queries.get(name)
        if query is None:
            raise _unknown("query", name, self.queries)
        return query

    def jobs(self) -> list[Job]:
        """Return all jobs, in the order of their registration."""
        return list(dict.fromkeys(query.job for query in list(self.queries.values())))

    def job(self, ident: str) -> Job | None:
        """Return the job of an id."""
        return next((job for job in self.jobs() if job.id == ident), None)

    def jobs_of(self, group: str) -> list[Job]:
        """Return the jobs of a group."""
        return [job for job in self.jobs() if job.group.name == group]

    def wanted(self, group: str) -> list[Job]:
        """Return the jobs of a group of which a query is not paused, as they read each other."""
        jobs = self.jobs_of(group)
        return read_order(j for j in jobs if not all(q.is_paused for q in self.queries_of(j)))

    def queries_of(self, job: Job) -> list[RegisteredQuery]:
        """Return the queries that a job evaluates."""
        return [query for query in list(self.queries.values()) if query.job is job]

    def maker_of(self, iri: str | None) -> Job | None:
        """Return the job whose answers are a stream."""
        return next((job for job in self.jobs() if iri is not None and job.feeds == iri), None)

    def made(self, name: str) -> Job | None:
        """Return the job whose answers are the stream of a name."""
        query = self.queries.get(name)
        return query.job if query is not None and query.job.feeds is not None else None

    def logs(self) -> dict[str, DeclaredStream]:
        """Return all streams by IRI, answers included."""
        declared = {stream.iri: stream for stream in list(self.streams.values())}
        return declared | {job.stream.iri: job.stream for job in self.jobs()}

    def readable(self) -> dict[str, str]:
        """Return the name of each stream that queries can read, by IRI."""
        declared = {stream.iri: stream.name for stream in list(self.streams.values())}
        made = {q.job.feeds: q.name for q in reversed(list(self.queries.values())) if q.job.feeds}
        return {**made, **declared}

    def readers(self, iri: str) -> list[RegisteredQuery]:
        """Return the queries that read a stream."""
        return [query for query in list(self.queries.values()) if iri in query.job.reads]


def read_order(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs so that each follows those whose answers it reads."""
    left, ordered = list(jobs), []
    while left:
        made = {job.feeds for job in left}
        ready = [job for job in left if not made & set(job.reads)] or left
        ordered += ready
        left = [job for job in left if job not in ready]
    return ordered


def _unknown(kind: str, name: str, known: Iterable[str]) -> NotFoundError:
    names = sorted(known)
    plural = {"stream": "streams", "query": "queries"}[kind]
    listed = f"the {plural} are {', '.join(names)}" if names else f"there are no {plural}"
    return NotFoundError(f"there is no {kind} {name[:80]}", nearest(name, names) or listed)
