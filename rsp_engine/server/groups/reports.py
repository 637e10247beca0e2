"""What a worker reports of a query, as plain data."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

    from rsp_engine.monitor.run_monitor import QueryStatistics

__all__ = ["query_report"]


def query_report(
    seen: QueryStatistics,
    watermark: float | None,
    refreshed: Mapping[tuple[str, str], Counter[str]],
) -> dict[str, Any]:
    """Return the figures of a query; `refreshed` is that of all queries and services."""
    last = None if seen.latest is None else seen.latest[0]
    name = seen.info.name
    return {
        "windows": seen.windows,
        "rows": seen.rows,
        "exact": seen.exact,
        "watermark": None if watermark is None or abs(watermark) == inf else int(watermark),
        "last_window": last and {"open": last.window.open, "close": last.window.close},
        "last_exact": last and bool(last.stats.get("exact", True)),
        "budget_spent": seen.budget_spent,
        "requests": seen.requests,
        "cold_misses": seen.cold_misses,
        "stale": seen.stale,
        "refreshed": {s: dict(count) for (query, s), count in refreshed.items() if query == name},
        "faults": dict(seen.faults.copy()),
        "last_seconds": seen.last_seconds,
        "evaluation": {
            "count": seen.evaluation.count,
            "total": seen.evaluation.total,
        },
    }
