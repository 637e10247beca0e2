"""The flags of ranked queries, which several subcommands share."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ArrivalsChoice",
    "ArrivalsFlag",
    "FunctionsFlag",
    "MatchChoice",
    "MatchFlag",
    "MaxInstancesFlag",
    "OperatorChoice",
    "OperatorFlag",
    "OracleFlag",
    "RangesFlag",
    "value_ranges",
]


class OperatorChoice(StrEnum):
    """The operators of ranked queries."""

    auto = "auto"
    mintopk = "mintopk"
    sap = "sap"
    sap_dynamic = "sap-dynamic"
    sap_equal = "sap-equal"
    pretopk = "pretopk"
    skyband = "skyband"
    sma = "sma"
    sma_ring = "sma-ring"
    eaa = "eaa"
    sla = "sla"
    approximate = "approximate"
    oracle = "oracle"
    general = "general"


class MatchChoice(StrEnum):
    """Where the triples of a solution come from."""

    window = "window"
    element = "element"


class ArrivalsChoice(StrEnum):
    """Which arrivals of a join key count within a window."""

    latest = "latest"
    all = "all"


OperatorFlag = Annotated[
    OperatorChoice,
    typer.Option(help="The operator of ranked queries; with auto the planner chooses."),
]
MatchFlag = Annotated[
    MatchChoice,
    typer.Option(
        help="element: match each WINDOW block within one element, so that no solution spans"
        " two elements; ranked queries of several patterns then take a top-k operator."
    ),
]
RangesFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        metavar="IRI=LOW,HIGH",
        help="A stream and the range of its attribute, for ranked queries over several streams;"
        " 0,1 by default (repeatable).",
    ),
]
FunctionsFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--function",
        metavar="'F(?a, ?b) = ...'",
        help="A function that queries call, as an expression over its parameters (repeatable).",
    ),
]
MaxInstancesFlag = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Keep at most N instances of objects whose attributes arrive in several streams:"
        " answers are approximate, and marked as such.",
    ),
]
ArrivalsFlag = Annotated[
    ArrivalsChoice | None,
    typer.Option(help="Which arrivals of a join key count: the latest (default), or all."),
]
OracleFlag = Annotated[
    bool,
    typer.Option(
        "--oracle",
        help="Score each ranked answer against all remote data, fetched outside the budget.",
    ),
]


def value_ranges(texts: Iterable[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Parse the `LOW,HIGH` of each stream.

    >>> value_ranges([("http://e/s", "0,250")])
    {'http://e/s': (0.0, 250.0)}
    """
    return {stream: _range(stream, text) for stream, text in texts}


def _range(stream: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise BindingError(
            f"--range {stream}={text}: this is not a range", "write LOW,HIGH, such as 0,250"
        ) from None
    return low, high
