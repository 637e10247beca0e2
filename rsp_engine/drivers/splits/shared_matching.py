"""What the queries of a run share where splits are reduced: matching, and panes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rsp_engine.drivers.splits.pushdown import pushdowns, shared
from rsp_engine.evaluators.per_pane import PerPaneConfig
from rsp_engine.plan.equal_queries import EqualQueries
from rsp_engine.plan.explain.sharing import SharedMatching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan

__all__ = ["shared_matching"]


def shared_matching(plans: Sequence[PhysicalPlan]) -> dict[str, list[SharedMatching]]:
    """Return what each query shares with others, by its name; a query that shares nothing has none.

    Triples as they are read are not matched, and every query has them; those of a pane that is
    evaluated by itself are stored once.
    """
    plans = EqualQueries(plans).evaluated
    # Graphs are compared by their files, which are read by a run alone.
    bare = [replace(plan, graphs=()) for plan in plans]
    found: dict[str, list[SharedMatching]] = {}
    for stream in dict.fromkeys(scan.stream for plan in plans for scan in plan.scans):
        for pushdown in shared(pushdowns(bare, stream)):
            is_matched = pushdown.wanted is not None
            for reader in pushdown.readers:
                own = plans[reader.step]
                others = [
                    other
                    for other in pushdown.readers
                    if other.step != reader.step
                    and _can_share(own, plans[other.step], is_matched=is_matched)
                ]
                alike = [other for other in others if other.frame.cut == reader.frame.cut]
                names, panes = (
                    tuple(dict.fromkeys(plans[other.step].name for other in several))
                    for several in (others if is_matched else (), alike)
                )
                if names or panes:
                    found.setdefault(own.name, []).append(SharedMatching(stream, names, panes))
    return found


def _can_share(one: PhysicalPlan, other: PhysicalPlan, *, is_matched: bool) -> bool:
    """Return whether two queries that need the same of a stream can share it."""
    if is_matched:
        return one.graphs == other.graphs
    return all(isinstance(plan.operator, PerPaneConfig) for plan in (one, other))
