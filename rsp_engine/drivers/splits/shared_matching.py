"""What the queries of a run share where splits are reduced: matching, and panes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rsp_engine.drivers.splits.pushdown import cut_of, pushdowns, shared
from rsp_engine.plan.equal_queries import EqualQueries
from rsp_engine.plan.explain.sharing import SharedMatching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan

__all__ = ["shared_matching"]


def shared_matching(plans: Sequence[PhysicalPlan]) -> dict[str, list[SharedMatching]]:
    """Return what each query shares with others, by its name; a query that shares nothing has none.

    Triples as they are read are not matched, and every query has them.
    """
    plans = EqualQueries(plans).evaluated
    # Graphs are compared by their files, which are read by a run alone.
    bare = [replace(plan, graphs=()) for plan in plans]
    found: dict[str, list[SharedMatching]] = {}
    for stream in dict.fromkeys(scan.stream for plan in plans for scan in plan.scans):
        for pushdown in shared(pushdowns(bare, stream)):
            if pushdown.wanted is None:
                continue
            for reader in pushdown.readers:
                graphs = plans[reader.step].graphs
                others = [
                    r
                    for r in pushdown.readers
                    if r.step != reader.step and plans[r.step].graphs == graphs
                ]
                alike = [r for r in others if cut_of(r.frame) == cut_of(reader.frame)]
                names, panes = (
                    tuple(dict.fromkeys(plans[each.step].name for each in readers))
                    for readers in (others, alike)
                )
                if names:
                    own = found.setdefault(plans[reader.step].name, [])
                    own.append(SharedMatching(stream, names, panes))
    return found
