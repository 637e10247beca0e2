"""The options of a query: what the user sets in addition to the query text."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import BindingError
from rsp_engine.grammar.definitions import USUAL
from rsp_engine.options import RankingOptions, ServiceOptions, WindowOptions
from rsp_engine.policies.registry import POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.evaluators.physical_plan import Connect
    from rsp_engine.grammar.definitions import Definition
    from rsp_engine.plan.monotone import DeclaredDirections
    from rsp_engine.policies.policy import Policy

__all__ = ["QueryOptions"]


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The options of a query, and what is bound to its names.

    Attributes:
        windows: The options of windows.
        ranking: The options of ranked queries.
        services: The options of remote data.
        functions: The user's functions, by name or IRI.
        monotone: How these functions change with their arguments, by name.
        definitions: Functions that expand to an expression of the query language, by name.
        graphs: The files of static graphs, by IRI.
        folder: The folder against which relative `file:` IRIs of graphs are resolved.
        endpoints: How to connect to the endpoints of remote datasets, by IRI.
        policies: The refresh policies that a name can refer to.
        feeds: The services that push their changes.
        modified: The property that gives the time when a key was last modified, by service.
        ranges: The smallest and the largest value of an attribute, by the IRI of its stream.
    """

    windows: WindowOptions = field(default_factory=WindowOptions)
    ranking: RankingOptions = field(default_factory=RankingOptions)
    services: ServiceOptions = field(default_factory=ServiceOptions)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    monotone: Mapping[str, DeclaredDirections] = field(default_factory=dict)
    definitions: Mapping[str, Definition] = field(default_factory=lambda: USUAL)
    graphs: Mapping[str, Path] = field(default_factory=dict)
    folder: Path = Path()
    endpoints: Mapping[str, Connect] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=lambda: POLICIES)
    feeds: frozenset[str] = frozenset()
    modified: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for stream, (low, high) in self.ranges.items():
            if not 0 <= low <= high < inf:
                hint = "give 0 <= LOW <= HIGH: a missing value counts as zero"
                raise BindingError(f"the range of <{stream}> cannot be from {low} to {high}", hint)

    @property
    def bound_services(self) -> tuple[str, ...]:
        """The services that have an endpoint or a feed, in order."""
        return tuple(sorted({*self.endpoints, *self.feeds}))
