"""The flags of ranked queries, which several words of the command share."""

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
    """What runs a ranked query."""

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
    """What counts where a join key arrives several times in a window."""

    latest = "latest"
    all = "all"


OperatorFlag = Annotated[
    OperatorChoice,
    typer.Option(help="What runs a ranked query; the planner chooses unless one is named."),
]
MatchFlag = Annotated[
    MatchChoice,
    typer.Option(
        help="element: match each WINDOW block in one element at a time, so that no solution spans"
        " two elements; ranked queries of several patterns then take a top-k operator."
    ),
]
RangesFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        metavar="IRI=LOW,HIGH",
        help="A stream and the range of its attribute, for ranked queries over several streams;"
        " 0,1 unless told (repeatable).",
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
        help="Keep no more than so many instances of objects whose attributes come in several"
        " streams: answers are approximate, and say so.",
    ),
]
ArrivalsFlag = Annotated[
    ArrivalsChoice | None,
    typer.Option(help="Of several arrivals of a join key the latest counts (if left out), or all."),
]
OracleFlag = Annotated[
    bool,
    typer.Option(
        "--oracle",
        help="Judge each ranked answer by all remote data, which is fetched beside the budget.",
    ),
]


def value_ranges(given: Iterable[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Read `LOW,HIGH` of streams.

    >>> value_ranges([("http://e/s", "0,250")])
    {'http://e/s': (0.0, 250.0)}
    """
    return {stream: _range(stream, text) for stream, text in given}


def _range(stream: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise BindingError(
            f"--range {stream}={text}: this is no range", "say LOW,HIGH: 0,250"
        ) from None
    return low, high
