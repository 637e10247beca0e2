"""The explanation of pushdown on Spark: what executors send for each pane, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.pairs.config import PairsConfig
from rsp_engine.evaluators.topk import TopkConfig
from rsp_engine.model.windows import CountFrame

if TYPE_CHECKING:
    from rsp_engine.evaluators.physical_plan import PhysicalPlan

__all__ = ["sent_on_spark"]


def sent_on_spark(physical: PhysicalPlan) -> str:
    """Return what executors send of each pane, in a sentence."""
    if any(isinstance(scan.frame, CountFrame) for scan in physical.scans):
        return "nothing is pruned; the driver reads the stream, since elements are counted in order"
    if any(scan.blocks for scan in physical.scans):
        return "the solutions of each element, once per pane; not pruned, since all may count"
    if any(scan.selection is not None for scan in physical.scans):
        return "pruned to the triples of each pane that match a pattern and its filters"
    match physical.operator:
        case TopkConfig(k=k):
            why = f"the others expire together with {k} better ones"
            return f"pruned to the {k} best of each pane: {why}"
        case AcquaTopConfig(grouping=None, arrivals="latest"):
            return "the latest arrival of each key per pane; not pruned, since remote values change"
        case AcquaTopConfig(grouping=None):
            return "every arrival; not pruned, since remote values change"
        case AcquaTopConfig() | GroupTopkConfig():
            return "each solution once per pane; not pruned, since it may recur in another pane"
        case PairsConfig():
            return "nothing is pruned; the driver reads the stream, since any two elements may pair"
        case _:
            return "the triples of each pane, once each; not pruned, since all may count"
