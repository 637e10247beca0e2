"""What a user decides about a query beside its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.model.windows import Bounds
    from rsp_engine.operators.report import ReportKind

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a query.

    `bounds` and `t0` say what a window is, `report` which windows are evaluated. `functions` are
    the user's own, by name or IRI. `graphs` are the files of static graphs, by IRI; a relative IRI
    is a file beside `folder`.
    """

    bounds: Bounds = "(]"
    t0: int = 0
    report: ReportKind = "nonempty"
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    graphs: Mapping[str, Path] = field(default_factory=dict)
    folder: Path = Path()
