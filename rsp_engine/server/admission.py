"""Admission: whether a query fits those that are registered, which job evaluates it, since when."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rsp_engine.io.sources.spec import nearest
from rsp_engine.model.option import milliseconds
from rsp_engine.server.groups.places import has_count_windows
from rsp_engine.server.refusals import ConflictError, MalformedError
from rsp_engine.server.registration import are_equal

if TYPE_CHECKING:
    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.server.catalog import Catalog, Job
    from rsp_engine.server.registration import Registration

__all__ = ["check_fits", "equal_job", "free_job_id", "group_id", "start_instant"]


def group_id(registration: Registration, job: str) -> str:
    """Return the name of the group of a query: that which it names, or its own."""
    return f"q-{job}" if registration.group is None else f"g-{registration.group}"


def free_job_id(catalog: Catalog, name: str) -> str:
    """Return an id for the job of a query that no other job has."""
    taken, number, free = {job.id for job in catalog.jobs()}, 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free


def check_fits(
    catalog: Catalog, registration: Registration, plan: Query, *, is_attached: bool
) -> None:
    """Refuse a query whose streams are not declared, or which does not fit its group.

    One that `is_attached` to the job of an equal query has the name of that job in answers.
    """
    physical = plan.physical
    if registration.name in catalog.streams:
        raise ConflictError(f"there is a stream {registration.name}", "choose another name")
    readable = catalog.readable()
    for scan in physical.scans:
        if scan.stream not in readable:
            raise MalformedError(
                f"stream <{scan.stream}> is not declared",
                nearest(scan.stream, list(readable)) or "declare it first: POST /streams",
            )
    another = "choose another IRI in REGISTER"
    if physical.feeds in {stream.iri for stream in catalog.streams.values()}:
        raise ConflictError(f"<{physical.feeds}> is a declared stream", another)
    if is_attached:
        return
    if catalog.maker_of(physical.feeds) is not None:
        raise ConflictError(f"another query makes the stream <{physical.feeds}>", another)
    if registration.group is not None:
        _check_group(catalog, registration, plan)


def _check_group(catalog: Catalog, registration: Registration, plan: Query) -> None:
    if has_count_windows(plan.physical):
        raise MalformedError(
            "windows that count elements cannot share a group",
            "they count from where their query begins to read: leave out group",
        )
    for job in catalog.jobs_of(f"g-{registration.group}"):
        if job.name == plan.physical.name:
            hint = "give each a name with REGISTER"
            raise ConflictError(f"two queries of the group are called {job.name}", hint)
        for what, own in asdict(registration.bindings).items():
            other = asdict(job.registration.bindings)[what]
            if own != other if what == "options" else _clash(own, other):
                hint = "give it the same, or another group"
                raise ConflictError(f"the group runs with other {what}", hint)


def _clash(one: Any, other: Any) -> bool:  # noqa: ANN401 - texts or mappings
    if not isinstance(one, dict):
        return False
    return any(one[key] != other[key] for key in one.keys() & other.keys())


def start_instant(catalog: Catalog, registration: Registration, plan: Query) -> int | None:
    """Return after which instant windows close that a query answers; None is before all."""
    match registration.start:
        case "earliest":
            return None
        case int(instant):
            return instant
        case _:
            return _now(catalog, registration, plan)


def _now(catalog: Catalog, registration: Registration, plan: Query) -> int | None:
    """Return the last instant at which all windows are closed that close there."""
    logs = {iri: log for iri, log in catalog.logs().items() if log.has_log}
    read = {scan.stream for scan in plan.physical.scans}
    times = [logs[iri].greatest() for iri in read if iri in logs]
    known = [time for time in times if time is not None]
    if not known or len(known) < len(times):
        return None
    delay = milliseconds(registration.bindings.options.get("max_delay", 0))
    return min(known) - delay - (plan.physical.bounds == "(]")


def equal_job(
    catalog: Catalog, registration: Registration, plan: Query, after: int | None
) -> Job | None:
    """Return the job that evaluates an equal query from the same start, if there is one."""
    if has_count_windows(plan.physical):
        return None
    for query in catalog.queries.values():
        job, other = query.job, query.registration
        is_same = (
            other.group == registration.group
            and other.bindings == registration.bindings
            and are_equal(job.plan.physical, plan.physical)
            and not query.is_paused
        )
        covers = job.after is None or (after is not None and job.after <= after)
        is_begun = other.start == registration.start or (registration.start == "now" and covers)
        if is_same and is_begun:
            return job
    return None
