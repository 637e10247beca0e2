"""The plan of a group: what its worker runs, written by the server as one file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from rsp_engine.errors import StateError
from rsp_engine.io.atomic_file import write_file
from rsp_engine.server.groups.bindings import Bindings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["GroupPlan", "PlannedJob", "PlannedStream", "read_plan", "write_plan"]

_FILE = "group.json"


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A query that is evaluated, and the log of its answers."""

    job: str
    name: str
    """The name of the query in its answers."""
    text: str
    answers: str
    """The folder of the log of its answers."""
    after: int | None
    """The windows that close after this are answered; None is before all."""
    base: Sequence[int] | None
    """The offset and the number at which the log of answers ended when the group was planned."""
    keep: Sequence[int]


@dataclass(frozen=True, slots=True)
class PlannedStream:
    """A stream that the group reads: a log from an offset on, or a source of its own."""

    iri: str
    name: str
    folder: str | None = None
    offset: int | None = None
    kept_from: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What a worker runs. Jobs are in the order in which they read each other's answers."""

    checkpoint: str
    jobs: Sequence[PlannedJob]
    streams: Sequence[PlannedStream]
    bindings: Bindings = Bindings()  # noqa: RUF009 - it is immutable
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """The prefixes of the definitions of functions."""


def write_plan(folder: Path, plan: GroupPlan) -> None:
    """Write the plan of a group to its folder."""
    write_file(folder / _FILE, [json.dumps(asdict(plan), indent=1).encode()])


def read_plan(folder: Path) -> GroupPlan:
    """Read the plan of a group."""
    path = folder / _FILE
    try:
        data = json.loads(path.read_bytes())
        jobs = [PlannedJob(**job) for job in data.pop("jobs")]
        streams = [PlannedStream(**stream) for stream in data.pop("streams")]
        bindings = Bindings(**data.pop("bindings"))
        return GroupPlan(bindings=bindings, jobs=jobs, streams=streams, **data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(f"{path} cannot be read: {error}", "register its queries again") from None
