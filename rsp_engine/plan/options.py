"""The options of a query: what the user sets in addition to the query text."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.service.service_plan import ServiceOptions
from rsp_engine.grammar.definitions import USUAL
from rsp_engine.policies.registry import POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.evaluators.acquatop.config import ArrivalRule
    from rsp_engine.evaluators.service.service_plan import Connect
    from rsp_engine.grammar.definitions import Definition
    from rsp_engine.model.windows import Bounds
    from rsp_engine.operators.windows.report import ReportKind
    from rsp_engine.plan.monotone import DeclaredDirections
    from rsp_engine.policies.policy import Policy

__all__ = ["OPERATORS", "MatchRule", "OperatorName", "QueryOptions"]

MatchRule = Literal["window", "element"]
"""The scope in which a WINDOW block is matched: the whole window, or each element separately."""

OperatorName = Literal[
    "auto", "mintopk", "sap", "sap-dynamic", "sap-equal", "pretopk", "skyband", "sma", "sma-ring",
    "eaa", "sla", "approximate", "oracle", "general",
]  # fmt: skip
OPERATORS: tuple[OperatorName, ...] = get_args(OperatorName)


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The options of a query.

    Attributes:
        bounds: Whether a window includes its left and its right bound.
        t0: The origin of time windows, in milliseconds.
        report: Which windows are evaluated.
        functions: The user's functions, by name or IRI.
        monotone: How these functions change with their arguments, by name.
        definitions: Functions that expand to an expression of the query language, by name.
        graphs: The files of static graphs, by IRI.
        folder: The folder against which relative `file:` IRIs of graphs are resolved.
        services: How to connect to the endpoints of remote datasets, by IRI.
        service_options: The policy, the budget and the limits of remote requests.
        policies: The refresh policies that a name can refer to.
        feeds: The services that push their changes.
        modified: The property that gives the time when a key was last modified, by service.
        operator: The operator of a ranked query; `auto` lets the planner choose.
        arrivals: Which arrivals of a join key count: the latest, or all.
        oracle: Whether answers are compared with those over the complete remote data.
        match: Whether a solution may span elements.
        ranges: The smallest and the largest value of an attribute, by the IRI of its stream.
        max_instances: How many instances of objects the approximate operator keeps at most.
    """

    bounds: Bounds = "(]"
    t0: int = 0
    report: ReportKind = "nonempty"
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    monotone: Mapping[str, DeclaredDirections] = field(default_factory=dict)
    definitions: Mapping[str, Definition] = field(default_factory=lambda: USUAL)
    graphs: Mapping[str, Path] = field(default_factory=dict)
    folder: Path = Path()
    services: Mapping[str, Connect] = field(default_factory=dict)
    service_options: ServiceOptions = field(default_factory=ServiceOptions)
    policies: Mapping[str, Policy] = field(default_factory=lambda: POLICIES)
    feeds: frozenset[str] = frozenset()
    modified: Mapping[str, str] = field(default_factory=dict)
    operator: OperatorName = "auto"
    arrivals: ArrivalRule | None = None
    oracle: bool = False
    match: MatchRule = "window"
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    max_instances: int | None = None

    def __post_init__(self) -> None:
        for stream, (low, high) in self.ranges.items():
            if not 0 <= low <= high < inf:
                hint = "give 0 <= LOW <= HIGH: a missing value counts as zero"
                raise BindingError(f"the range of <{stream}> cannot be from {low} to {high}", hint)

    @property
    def bound_services(self) -> tuple[str, ...]:
        """The services that have an endpoint or a feed, in order."""
        return tuple(sorted({*self.services, *self.feeds}))
