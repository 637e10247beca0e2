"""The flags of SERVICE, which several subcommands share."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine.cli.binding import bound_once
from rsp_engine.errors import BindingError
from rsp_engine.model.durations import parse_duration

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rsp_engine.evaluators.service.service_plan import ServiceOptions

__all__ = [
    "AllowFlag",
    "BudgetFlag",
    "CapacityFlag",
    "ChangesFlag",
    "DeadlineFlag",
    "MaxRequestsFlag",
    "ModifiedFlag",
    "PolicyFlag",
    "ReplicaChoice",
    "ReplicaFlag",
    "SeedFlag",
    "ServicesFlag",
    "StandByFlag",
    "modified_by",
    "service_options",
]


class ReplicaChoice(StrEnum):
    """How the replica of remote data starts."""

    snapshot = "snapshot"
    cache = "cache"


ServicesFlag = Annotated[
    list[str] | None,
    typer.Option(
        metavar="IRI=URL",
        help="A SERVICE of the query and the SPARQL endpoint behind it (repeatable).",
    ),
]
AllowFlag = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        help="A server that may be contacted, and no other (repeatable); by default all that are"
        " bound.",
    ),
]
ChangesFlag = Annotated[
    list[str] | None,
    typer.Option(
        metavar="IRI=SOURCE",
        help="A SERVICE and a stream of its changes: new triples, valid from their time on"
        " (repeatable).",
    ),
]
ModifiedFlag = Annotated[
    list[str] | None,
    typer.Option(
        metavar="IRI=PROPERTY",
        help="A SERVICE and the property that states when a key was last modified (repeatable).",
    ),
]
PolicyFlag = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The refresh policy: WST, WSJ-..., AT-... or EXACT."),
]
BudgetFlag = Annotated[
    int | None,
    typer.Option(help="How many remote keys an evaluation may fetch; 10 by default."),
]
StandByFlag = Annotated[
    int | None,
    typer.Option("--n", help="How many objects to keep beyond the k best; 10 by default."),
]
MaxRequestsFlag = Annotated[
    int | None, typer.Option(help="How many requests an evaluation may send.")
]
DeadlineFlag = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="How long an evaluation may wait for remote data: 500ms."
    ),
]
SeedFlag = Annotated[int | None, typer.Option(help="The seed of policies that use randomness.")]
ReplicaFlag = Annotated[
    ReplicaChoice | None,
    typer.Option(help="Load all remote data first (snapshot), or on cache misses (cache)."),
]
CapacityFlag = Annotated[
    int | None, typer.Option(help="How many remote keys the replica keeps; all by default.")
]


def modified_by(
    texts: list[str] | None,
    bound: Collection[str],
    known: Collection[str],
    prefixes: Mapping[str, str],
) -> dict[str, str]:
    """Return the property that states when a key was last modified, by service.

    >>> modified_by([":s=dct:modified"], {"http://e/s"}, (), {"": "http://e/", "dct": "http://d/"})
    {'http://e/s': 'http://d/modified'}
    """
    properties = {}
    for iri, text in bound_once(texts or [], known, prefixes, "--modified"):
        if iri not in bound:
            hint = "bind it: --service IRI=URL"
            raise BindingError(f"--modified {iri}: that service is not bound", hint)
        prefix, colon, local = text.partition(":")
        is_short = bool(colon) and prefix in prefixes and not local.startswith("//")
        plain = text.removeprefix("<").removesuffix(">")
        properties[iri] = prefixes[prefix] + local if is_short else plain
    return properties


def service_options(
    *,
    policy: str | None,
    budget: int | None,
    n: int | None,
    max_requests: int | None,
    deadline: str | None,
    seed: int | None,
    replica: ReplicaChoice | None,
    capacity: int | None,
    arrivals: str | None,
    is_bound: bool,
) -> ServiceOptions:
    """Return the options that the flags set; refuse flags of remote data without a service."""
    from rsp_engine.evaluators.service.service_plan import ServiceOptions
    from rsp_engine.replica.endpoints.endpoint import Limits

    flags = {
        "--policy": policy,
        "--budget": budget,
        "--n": n,
        "--max-requests": max_requests,
        "--deadline": deadline,
        "--seed": seed,
        "--replica": replica,
        "--capacity": capacity,
        "--arrivals": arrivals,
    }
    if not is_bound and (idle := [flag for flag, value in flags.items() if value is not None]):
        hint = "bind one: --service IRI=URL"
        raise BindingError(f"{idle[0]} needs a service, but none is bound", hint)
    default = ServiceOptions()
    deadline_ms = None if deadline is None else _milliseconds(deadline)
    try:
        return ServiceOptions(
            policy,
            default.budget if budget is None else budget,
            default.n if n is None else n,
            seed=default.seed if seed is None else seed,
            limits=Limits(max_requests, deadline_ms),
            snapshot=replica is not ReplicaChoice.cache,
            capacity=capacity,
        )
    except ValueError as reason:
        raise BindingError(f"these options are invalid: {reason}") from None


def _milliseconds(deadline: str) -> int:
    try:
        return parse_duration(deadline)
    except ValueError as reason:
        raise BindingError(f"--deadline {deadline}: {reason}") from None
