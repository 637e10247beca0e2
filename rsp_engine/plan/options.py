"""What a user decides about a query beside its text."""

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
    from rsp_engine.plan.monotone import DeclaredRanges
    from rsp_engine.policies.policy import Policy

__all__ = ["OPERATORS", "MatchRule", "OperatorName", "QueryOptions"]

MatchRule = Literal["window", "element"]
"""Over what a WINDOW block is matched: the whole window, or each of its elements by itself."""

OperatorName = Literal[
    "auto", "mintopk", "sap", "sap-dynamic", "sap-equal", "pretopk", "skyband", "sma", "sma-ring",
    "eaa", "sla", "approximate", "oracle", "general",
]  # fmt: skip
OPERATORS: tuple[OperatorName, ...] = get_args(OperatorName)


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The options of a query.

    `bounds` and `t0` say what a window is, `report` which windows are evaluated. `functions` are
    the user's own, by name or IRI, and `monotone` says how they go with their arguments; what is in
    `definitions` stands for an expression. `graphs` are the files of static graphs, by IRI; a
    relative IRI is a file beside `folder`. `services` are the endpoints of remote datasets, by IRI,
    and `feeds` those that push their changes; `modified` has the properties by which services tell
    when a key was last modified. `operator` forces how a ranked query is run, and `arrivals` says
    which arrivals of a join key count. With `oracle`, answers that need remote data are judged by
    all of it. `match` says whether a solution may span two elements. `ranges` has the least and the
    largest value of the attribute of a stream, by its IRI, and `max_instances` bounds what is kept
    of objects whose attributes come in several streams.
    """

    bounds: Bounds = "(]"
    t0: int = 0
    report: ReportKind = "nonempty"
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    monotone: Mapping[str, DeclaredRanges] = field(default_factory=dict)
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
                hint = "what is missing counts as zero, so that no value can be less"
                raise BindingError(f"the range of <{stream}> cannot be from {low} to {high}", hint)

    @property
    def bound_services(self) -> tuple[str, ...]:
        """The services that have an endpoint or a feed, in order."""
        return tuple(sorted({*self.services, *self.feeds}))
