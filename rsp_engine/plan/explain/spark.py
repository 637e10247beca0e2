"""The explanation of a run on Spark: what executors do, what reaches the driver, what bounds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.pairs.config import PairsConfig
from rsp_engine.evaluators.topk import TopkConfig
from rsp_engine.evaluators.window_run import can_share_windows
from rsp_engine.model.windows import CountFrame

if TYPE_CHECKING:
    from rsp_engine.evaluators.physical_plan import PhysicalPlan

__all__ = ["WorkOnSpark", "work_on_spark"]

_HOLDS_KEYS = "holds the keys of open windows, whose number bounds it: a budget is one decision"


class WorkOnSpark(NamedTuple):
    """A sentence about each."""

    executors: str
    driver: str


def work_on_spark(physical: PhysicalPlan) -> WorkOnSpark:
    """Return how executors and the driver share the work of a query."""
    if any(isinstance(scan.frame, CountFrame) for scan in physical.scans):
        return _alone("elements are counted in order")
    if isinstance(physical.operator, PairsConfig):
        return _alone("any two elements may pair")
    if can_share_windows(physical):
        return _shared(physical)
    match physical.operator:
        case TopkConfig(k=k):
            return WorkOnSpark(
                f"send the {k} best of each pane: the others expire together with {k} better ones",
                f"ranks these; {k} rows per pane of a split bound it",
            )
        case AcquaTopConfig(grouping=None, arrivals="latest"):
            sent = "the latest arrival of each key per pane; not pruned, since remote values change"
            return WorkOnSpark(f"send {sent}", _HOLDS_KEYS)
        case AcquaTopConfig(grouping=None):
            sent = "every arrival; not pruned, since remote values change"
            return WorkOnSpark(f"send {sent}", _HOLDS_KEYS)
        case AcquaTopConfig():
            sent = "each solution once per pane; not pruned, since it may recur in another pane"
            return WorkOnSpark(f"send {sent}", _HOLDS_KEYS)
        case _:
            why = "services are asked" if physical.services else "streams are ranked together"
            return WorkOnSpark(
                f"send the {_content(physical)}, once each; not pruned, since all may count",
                f"holds and evaluates the open windows, whose size bounds it: {why} in one place",
            )


def _alone(why: str) -> WorkOnSpark:
    return WorkOnSpark(
        f"do nothing, since {why}",
        "reads the stream, and holds and evaluates the open windows, whose size bounds it",
    )


def _shared(physical: PhysicalPlan) -> WorkOnSpark:
    if isinstance(physical.operator, GroupTopkConfig):
        k = physical.operator.k
        return WorkOnSpark(
            "store each solution once per pane, and rank the groups of large windows, each"
            " task those of some buckets of keys",
            f"merges the {k} best groups of each task, whose number bounds it, not that of keys;"
            " ranks small windows itself",
        )
    return WorkOnSpark(
        f"store the {_content(physical)}, once each, and evaluate large windows, a run of"
        " consecutive ones for each core",
        "receives the rows of answers, whose number bounds it; evaluates small windows itself",
    )


def _content(physical: PhysicalPlan) -> str:
    if any(scan.blocks for scan in physical.scans):
        return "solutions of the elements of each pane"
    if any(scan.selection is not None for scan in physical.scans):
        return "triples of each pane that match a pattern and its filters"
    return "triples of each pane"
