"""The identity of a physical plan: a saved state can be restored only into an equal plan.

Functions and static graphs are identified by name, and services by pattern and options: their code
and their location may change from one run to the next.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rsp_engine.evaluators.physical_plan import PhysicalPlan, WindowScan
    from rsp_engine.evaluators.protocol import EvaluatorConfig
    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig

__all__ = ["plan_identity"]

_TEXTS = ("sparql", "store_query")  # fields with generated text, which is no option


def plan_identity(plan: PhysicalPlan) -> dict[str, Any]:
    """Return everything that a saved state of the plan depends on, as plain data."""
    operator = plan.operator
    return {
        "query": plan.name,
        "operator": operator.tag,
        "windows": list(map(_window, plan.scans)),
        "options": {**_options(operator.query), **_options(operator)},
        "text": operator.query.sparql,
        "functions": sorted(operator.query.functions),
        "r2s": plan.r2s,
        "report": plan.report,
        "bounds": plan.bounds,
        "feeds": plan.feeds,
        "graphs": [graph.name for graph in plan.graphs],
        "services": list(map(_service, plan.services)),
    }


def _window(scan: WindowScan) -> list[Any]:
    """Return the stream and frame of a window, and the queries of its blocks, if any."""
    texts = [block.store_query.alone.sparql for block in scan.blocks]
    return [scan.window, scan.stream, asdict(scan.frame), *([texts] if texts else [])]


def _options(config: SparqlConfig | EvaluatorConfig) -> dict[str, Any]:
    """Return the numbers, strings and booleans of a configuration."""
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    plain = (str, int, float, type(None))
    return {n: v for n, v in values.items() if isinstance(v, plain) and n not in _TEXTS}


def _service(plan: ServicePlan) -> dict[str, Any]:
    pattern = {n: list(v) if isinstance(v, tuple) else v for n, v in asdict(plan.pattern).items()}
    return {
        **pattern,
        "policy": plan.policy.name,
        "budget": plan.options.budget,
        "n": plan.options.n,
        "limits": asdict(plan.limits),
        "seed": plan.options.seed,
        "snapshot": plan.options.replica == "snapshot",
        "capacity": plan.options.capacity,
        "estimation": asdict(plan.estimation),
        "is_pushed": plan.is_pushed,
        "modified": plan.modified,
    }
