"""What tells one physical plan from another: a saved state fits the plan that it was saved from.

Functions are known by their names, services by what they are asked, and static graphs by their
names: where these things are, and how they are done, may change from one run to the next.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rsp_engine.evaluators.physical_plan import PhysicalPlan, WindowScan
    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig

__all__ = ["plan_identity"]

_TEXTS = ("sparql", "asked")


def plan_identity(plan: PhysicalPlan) -> dict[str, Any]:
    """Return, as plain data, all that a state of the plan depends on."""
    operator = plan.operator
    return {
        "query": plan.name,
        "operator": operator.tag,
        "windows": list(map(_window, plan.scans)),
        "options": _options(operator),
        "text": operator.sparql,
        "functions": sorted(operator.functions),
        "r2s": plan.r2s,
        "report": plan.report,
        "bounds": plan.bounds,
        "feeds": plan.feeds,
        "graphs": [graph.name for graph in plan.graphs],
        "services": list(map(_service, plan.services)),
    }


def _window(scan: WindowScan) -> list[Any]:
    """Return what a window is over, and what is asked of its elements where they are matched."""
    asked = [block.asked.alone.sparql for block in scan.blocks]
    return [scan.window, scan.stream, asdict(scan.frame), *([asked] if asked else [])]


def _options(operator: SparqlConfig) -> dict[str, Any]:
    """Return the numbers, names and truth values of a configuration."""
    values = {field.name: getattr(operator, field.name) for field in fields(operator)}
    plain = (str, int, float, type(None))
    return {n: v for n, v in values.items() if isinstance(v, plain) and n not in _TEXTS}


def _service(plan: ServicePlan) -> dict[str, Any]:
    pattern = {n: list(v) if isinstance(v, tuple) else v for n, v in asdict(plan.pattern).items()}
    options = {**asdict(plan.options), "policy": plan.policy.name}
    return {**pattern, **options, "is_pushed": plan.is_pushed, "modified": plan.modified}
