"""The physical plan: configurations of windows, evaluators and services, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from rsp_engine.evaluators.protocol import EvaluatorConfig
    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.grammar.tree import RegisteredR2S
    from rsp_engine.model.windows import Bounds, CountFrame, TimeFrame
    from rsp_engine.operators.windows.element_solutions import ElementBlock
    from rsp_engine.options import ReportKind

__all__ = ["PhysicalPlan", "StaticGraph", "WindowScan"]


@dataclass(frozen=True, slots=True)
class WindowScan:
    """A window over a stream. With `blocks`, it holds solutions of its elements, not triples."""

    window: str
    stream: str
    frame: TimeFrame | CountFrame
    blocks: tuple[ElementBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class StaticGraph:
    """A file with the triples of a named graph, or of the default graph if `name` is None.

    `base` is the IRI in FROM or FROM NAMED: relative IRIs in the file are resolved against it.
    """

    name: str | None
    path: Path
    base: str


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """The plan of a query. `why` is the reason for the choice of the operator."""

    name: str
    scans: tuple[WindowScan, ...]
    graphs: tuple[StaticGraph, ...]
    operator: EvaluatorConfig
    why: str
    r2s: RegisteredR2S
    report: ReportKind
    bounds: Bounds
    feeds: str | None = None
    """The IRI of the stream of answers, if other queries can read it."""
    services: tuple[ServicePlan, ...] = ()
    """The plans of the SERVICE clauses, in the order in which the operator evaluates them."""
