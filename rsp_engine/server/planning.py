"""Planning: what the worker of a group runs, and from where it reads each log.

A new plan begins where each job has answered last: what its next windows hold is read again. If
that is no longer kept, there is no such plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.errors import RspError
from rsp_engine.server.groups.bindings import Bindings
from rsp_engine.server.groups.committed_log import close_of
from rsp_engine.server.groups.group_plan import (
    GroupPlan,
    PlannedJob,
    PlannedStream,
    read_plan,
    write_plan,
)
from rsp_engine.server.groups.places import complete_from, is_kept, read_from
from rsp_engine.server.refusals import ConflictError
from rsp_engine.server.streams import KEEP_ANSWERS_MS, source_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.server.catalog import Job
    from rsp_engine.server.streams import DeclaredStream

__all__ = ["check_places", "is_planned", "kept_from", "plan_group"]


def is_planned(folder: Path, jobs: Sequence[Job]) -> bool:
    """Return whether the plan on disk is that of these jobs."""
    try:
        plan = read_plan(folder)
    except RspError:
        return False
    return {(job.job, job.name) for job in plan.jobs} == {(job.id, job.name) for job in jobs}


def kept_from(plans: Sequence[PhysicalPlan], logs: Mapping[str, DeclaredStream]) -> dict[str, int]:
    """Return since when each stream that queries read is complete, if it is not whole."""
    read = {scan.stream for plan in plans for scan in plan.scans}
    removed = {iri: logs[iri].reader.index().removed.greatest for iri in read if iri in logs}
    return complete_from(plans, {iri: at for iri, at in removed.items() if at is not None})


def check_places(jobs: Sequence[Job], logs: Mapping[str, DeclaredStream]) -> None:
    """Refuse to go on with jobs whose next windows are no longer kept."""
    complete = kept_from([job.plan.physical for job in jobs], logs)
    for job in jobs:
        last = job.stream.reader.last(1)
        if last and not is_kept(job.plan.physical, close_of(last[0]), complete):
            raise ConflictError(
                f"the place of {job.registration.name} is gone: the elements of its next windows"
                " are no longer kept",
                "delete it and register it again, or keep more of its streams",
            )


def plan_group(
    folder: Path, jobs: Sequence[Job], logs: Mapping[str, DeclaredStream], keep_answers: int
) -> list[Path]:
    """Write the plan of a group to its folder; return the checkpoints that are of no use any more.

    The jobs are in the order in which they read each other's answers.
    """
    planned = [_planned_job(job, keep_answers) for job in jobs]
    old = sorted(folder.glob("checkpoint-*"))
    number = max((int(path.name.rpartition("-")[2]) for path in old), default=0) + 1
    plan = GroupPlan(
        f"checkpoint-{number}",
        planned,
        _planned_streams(jobs, {job.name: job.after for job in planned}, logs),
        _merged(job.registration.bindings for job in jobs),
        {name: iri for job in jobs for name, iri in job.plan.query.prefixes.items()},
    )
    write_plan(folder, plan)
    return old


def _planned_job(job: Job, keep_answers: int) -> PlannedJob:
    end, last = job.stream.reader.end(), job.stream.reader.last(1)
    return PlannedJob(
        job.id,
        job.name,
        job.registration.text,
        str(job.stream.folder),
        close_of(last[0]) if last else job.after,
        [end.offset, end.number] if end.number else None,
        [keep_answers, KEEP_ANSWERS_MS],
    )


def _planned_streams(
    jobs: Sequence[Job], after: Mapping[str, int | None], logs: Mapping[str, DeclaredStream]
) -> list[PlannedStream]:
    made = {job.feeds for job in jobs}
    starts = read_from([job.plan.physical for job in jobs], after)
    is_now = all(job.registration.start == "now" for job in jobs)
    read = dict.fromkeys(iri for job in jobs for iri in job.reads if iri not in made)
    return [_planned_stream(logs[iri], starts[iri], is_now=is_now) for iri in read]


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
    offset = reader.starts()[0] if since is None else reader.offset_for(since)
    kept = reader.index().removed.greatest
    return PlannedStream(stream.iri, stream.name, str(stream.folder), offset, kept)


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
