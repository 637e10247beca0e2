"""The flags of SERVICE, which several words of the command share."""

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
    """How the local copy of remote data begins."""

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
        help="A server that may be asked, and no other (repeatable); all that are bound, if left"
        " out.",
    ),
]
ChangesFlag = Annotated[
    list[str] | None,
    typer.Option(
        metavar="IRI=SOURCE",
        help="A SERVICE and a stream of its changes: triples as they are from their time on"
        " (repeatable).",
    ),
]
ModifiedFlag = Annotated[
    list[str] | None,
    typer.Option(
        metavar="IRI=PROPERTY",
        help="A SERVICE and the property by which it tells when a key was last modified"
        " (repeatable).",
    ),
]
PolicyFlag = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="What elects the keys to fetch anew: WST, WSJ-..., AT-... or EXACT."
    ),
]
BudgetFlag = Annotated[
    int | None,
    typer.Option(help="How many remote keys an evaluation may fetch; 10 if left out."),
]
StandByFlag = Annotated[
    int | None,
    typer.Option("--n", help="How many objects stand by behind the k best; 10 if left out."),
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
SeedFlag = Annotated[
    int | None, typer.Option(help="Where chance begins, for policies that use it.")
]
ReplicaFlag = Annotated[
    ReplicaChoice | None,
    typer.Option(help="Load all remote data first (snapshot), or what is missed (cache)."),
]
CapacityFlag = Annotated[
    int | None, typer.Option(help="How many remote keys are held; all if left out.")
]


def modified_by(
    given: list[str] | None,
    bound: Collection[str],
    asked: Collection[str],
    prefixes: Mapping[str, str],
) -> dict[str, str]:
    """Return the properties by which services tell when a key was last modified, by service.

    >>> modified_by([":s=dct:modified"], {"http://e/s"}, (), {"": "http://e/", "dct": "http://d/"})
    {'http://e/s': 'http://d/modified'}
    """
    found = {}
    for iri, text in bound_once(given or [], asked, prefixes, "--modified"):
        if iri not in bound:
            hint = "bind it: --service IRI=URL"
            raise BindingError(f"--modified {iri}: that service is not bound", hint)
        prefix, colon, local = text.partition(":")
        is_short = bool(colon) and prefix in prefixes and not local.startswith("//")
        plain = text.removeprefix("<").removesuffix(">")
        found[iri] = prefixes[prefix] + local if is_short else plain
    return found


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
    """Return what the flags say. Flags about remote data are refused where there are none."""
    from rsp_engine.evaluators.service.service_plan import ServiceOptions
    from rsp_engine.replica.endpoints.endpoint import Limits

    given = {
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
    if not is_bound and (idle := [flag for flag, value in given.items() if value is not None]):
        hint = "bind one: --service IRI=URL"
        raise BindingError(f"{idle[0]} is about remote data, and no service is bound", hint)
    default = ServiceOptions()
    within = None if deadline is None else _within(deadline)
    try:
        return ServiceOptions(
            policy,
            default.budget if budget is None else budget,
            default.n if n is None else n,
            seed=default.seed if seed is None else seed,
            limits=Limits(max_requests, within),
            snapshot=replica is not ReplicaChoice.cache,
            capacity=capacity,
        )
    except ValueError as reason:
        raise BindingError(f"these options cannot be: {reason}") from None


def _within(deadline: str) -> int:
    try:
        return parse_duration(deadline)
    except ValueError as reason:
        raise BindingError(f"--deadline {deadline}: {reason}") from None
