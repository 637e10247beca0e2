"""The flags of ranked queries, which several words of the command share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

__all__ = [
    "Arrivals",
    "ArrivalsFlag",
    "Match",
    "MatchFlag",
    "Operator",
    "OperatorFlag",
    "OracleFlag",
]


class Operator(StrEnum):
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
    oracle = "oracle"
    general = "general"


class Match(StrEnum):
    """Where the triples of a solution come from."""

    window = "window"
    element = "element"


class Arrivals(StrEnum):
    """What counts where a join key arrives several times in a window."""

    latest = "latest"
    all = "all"


OperatorFlag = Annotated[
    Operator,
    typer.Option(help="What runs a ranked query; the planner chooses unless one is named."),
]
MatchFlag = Annotated[
    Match,
    typer.Option(
        help="element: the triples of a solution always come in one element, so that ranked queries"
        " of several patterns can take a top-k operator."
    ),
]
ArrivalsFlag = Annotated[
    Arrivals,
    typer.Option(help="Of several arrivals of a join key the latest counts, or each by itself."),
]
OracleFlag = Annotated[
    bool,
    typer.Option(
        "--oracle",
        help="Judge each ranked answer by all remote data, which is fetched beside the budget.",
    ),
]
