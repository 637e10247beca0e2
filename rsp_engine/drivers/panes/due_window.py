"""A window that is due, and its panes: what the driver holds of them, and what is in files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rsp_engine.drivers.panes.pane_table import content_rows
from rsp_engine.evaluators.step import PendingAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.drivers.panes.distributed_step import DistributedStep
    from rsp_engine.drivers.panes.stored_pane import StoredPane
    from rsp_engine.evaluators.step import PutContent
    from rsp_engine.model.answers import Interval
    from rsp_engine.model.windows import Pane

__all__ = ["DueWindow", "PaneParts"]


@dataclass(slots=True)
class PaneParts:
    """The content of a pane, all of it once one of its windows is due."""

    held: list[PutContent] = field(default_factory=list)
    """What the driver holds."""
    stored: list[StoredPane] = field(default_factory=list)
    """What is in files."""

    @property
    def rows(self) -> int:
        """The number of solutions, or about that of triples."""
        return sum(map(content_rows, self.held)) + sum(pane.rows for pane in self.stored)


@dataclass(frozen=True, slots=True, eq=False)
class DueWindow(PendingAnswer):
    """A window of a query that is due at an instant, with the window that each scan has closed."""

    step: DistributedStep
    instant: int
    interval: Interval
    closed: tuple[int, ...]
    panes: tuple[Mapping[Pane, PaneParts], ...]
    """The content of the panes, by scan."""
