"""The protocols of an evaluator and of its configuration, and what a step gives an evaluator.

A configuration is a value of the plan. It says what the evaluator reads of a window, and makes the
evaluator of a run. So an evaluator is one file, with its configuration, and a choice of the
planner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import pyoxigraph as ox

from rsp_engine.evaluators.physical_plan import load_graphs
from rsp_engine.evaluators.shared_panes import SharedPanes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from dataclasses import Field

    from rsp_engine.evaluators.pairs.config import Skybands
    from rsp_engine.evaluators.physical_plan import StaticGraph, WindowScan
    from rsp_engine.evaluators.service.refresh import Refresh
    from rsp_engine.model.answers import Boolean, Graph, Solutions
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.pairs.shared_skyband import SharedSkyband
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.scan import Scan

__all__ = [
    "Bidding",
    "Evaluator",
    "EvaluatorConfig",
    "EvaluatorContext",
    "Parted",
    "ScanKind",
    "Snapshots",
]

ScanKind = Literal["triples", "timed triples", "solutions"]
"""What an evaluator reads of a window: its triples, these with their times, or the solutions of a
pattern, for which each pane is matched once."""


class Evaluator(Protocol):
    """Answers one query, window by window."""

    @property
    def may_give_blank_nodes(self) -> bool:
        """Whether an answer so far had blank nodes, so that answers must be searched for them."""

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the windows that the scans have closed, at an instant."""

    def stats(self) -> Mapping[str, Any]:
        """Return the cost and the quality of the last answer."""

    def state(self) -> StateData:
        """Return what cannot be derived from the scans and the replicas, as plain data."""

    def restore(self, state: StateData) -> None:
        """Restore a saved state, after the scans and the replicas."""


@runtime_checkable
class Snapshots(Protocol):
    """The ability of an evaluator to answer between windows, from a skyband."""

    @property
    def skyband(self) -> SharedSkyband:
        """The skyband, which other queries may share."""

    def now(self, k: int | None = None, size: int | None = None) -> Solutions | Graph:
        """Return the top k pairs of the last `size` milliseconds, or elements."""


@runtime_checkable
class Bidding(Protocol):
    """The ability of an evaluator to bid for the budget of a service, before it is divided."""

    def prepare(self, scans: Sequence[Scan], now: int) -> None:
        """Take the content of an instant, and bid; `answer` follows for the same instant."""


@runtime_checkable
class Parted(Protocol):
    """The ability of an evaluator to answer in parts: each from the content of a bucket of keys."""

    def part(self, scans: Sequence[Scan], now: int) -> StateData:
        """Return what the keys of a bucket can contribute to an answer, as plain data."""

    def combine(self, parts: Sequence[StateData], now: int) -> Solutions | Graph | Boolean:
        """Return the answer from the parts of all buckets; no window need have been seen."""


class EvaluatorConfig(Protocol):
    """The configuration of an evaluator: a frozen dataclass.

    `tag` names the evaluator in saved states.
    """

    tag: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def query(self) -> SparqlConfig:
        """The query as on the general path: it defines what the answers are."""

    @property
    def scan_kind(self) -> ScanKind:
        """What the evaluator reads of a window."""

    def evaluator(self, context: EvaluatorContext) -> Evaluator:
        """Return the evaluator of a run."""


@dataclass(frozen=True, slots=True)
class EvaluatorContext:
    """What a step gives its evaluator: the other parts of the plan, and what a run shares.

    `refreshes` are those of the SERVICE clauses; `skybands` and `panes` are shared with other
    queries.
    """

    scans: Sequence[WindowScan]
    graphs: Sequence[StaticGraph]
    refreshes: Sequence[Refresh]
    skybands: Skybands
    panes: SharedPanes = field(default_factory=SharedPanes)

    @property
    def windows(self) -> list[str]:
        """The names of the windows."""
        return [scan.window for scan in self.scans]

    def store(self) -> ox.Store:
        """Return a new store with the static graphs."""
        store = ox.Store()
        load_graphs(store, self.graphs)
        return store
