"""The physical plan: configurations of sources, windows and operators, and nothing that acts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from rsp_engine.grammar.tree import R2S
    from rsp_engine.model.windows import Bounds, CountFrame, TimeFrame
    from rsp_engine.operators.asking import GeneralConfig
    from rsp_engine.operators.report import ReportKind
    from rsp_engine.plan.services import ServicePlan

__all__ = ["PhysicalPlan", "StaticGraph", "WindowScan"]


@dataclass(frozen=True, slots=True)
class WindowScan:
    """A window over a stream."""

    window: str
    stream: str
    frame: TimeFrame | CountFrame


@dataclass(frozen=True, slots=True)
class StaticGraph:
    """A file whose triples are a named graph, or part of the default graph."""

    name: str | None
    path: Path


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """How a query is run. `why` says why this operator was chosen."""

    name: str
    scans: tuple[WindowScan, ...]
    graphs: tuple[StaticGraph, ...]
    operator: GeneralConfig
    why: str
    r2s: R2S
    report: ReportKind
    bounds: Bounds
    feeds: str | None = None
    """The IRI of the stream that the answers are, if other queries can read them."""
    services: tuple[ServicePlan, ...] = ()
    """How the SERVICE clauses are answered, in the order in which the operator asks for them."""
