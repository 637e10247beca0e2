"""The oracle: keeps every observation, and aggregates each window from scratch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.incomplete.observations import (
    IncompleteOperatorConfig,
    Observations,
    ScoredObject,
    check_stream_count,
)
from rsp_engine.operators.topk.contract import TopkAnswer, check_open, check_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.incomplete.observations import ScoreAggregate

__all__ = ["IncompleteOracle"]

_Row = tuple[int, int, int, int, int, float, int]
"""First window, last window, stream, key, position, value, and previous end (`since`)."""


class IncompleteOracle:
    """The reference operator. Memory and time: all observations of the open windows."""

    def __init__(self, config: IncompleteOperatorConfig) -> None:
        self.config = config
        self._closed = -1
        self._rows: list[_Row] = []
        self._inside: list[_Row] = []

    def __len__(self) -> int:
        return len(self._rows)

    def arrive(self, pane: Pane, batch: Observations) -> None:
        check_open(pane, self._closed)
        check_stream_count(self.config, batch)
        columns = (column.tolist() for column in batch[:-1])  # only sketches need the hashes
        self._rows += [(pane.first, pane.last, *row) for row in zip(*columns, strict=True)]

    def close(self, window: int) -> TopkAnswer:
        check_order(window, self._closed)
        self._closed = window
        self._rows = [row for row in self._rows if row[1] >= window]
        self._inside = [row for row in self._rows if row[0] <= window]
        best = self._scored().best(self.config.k)
        return TopkAnswer(window, best.keys, best.scores)

    def near(self) -> Integers:
        return self._scored().near(self.config.k, self.config.slack)

    def _scored(self) -> ScoredObject:
        """Return the objects of the last closed window."""
        config = self.config
        seen: dict[int, dict[int, list[float]]] = {}
        latest: dict[int, int] = {}
        for _, _, stream, key, position, value, since in self._inside:
            latest[key] = max(position, latest.get(key, position))
            if since < self._closed:  # otherwise the window holds the earlier arrival
                seen.setdefault(key, {}).setdefault(stream, []).append(value)
        objects = [k for k, streams in seen.items() if all(s in streams for s in config.required)]
        scores = [
            _aggregate(config.function, (_aggregate(config.repeats, v) for v in seen[key].values()))
            for key in objects
        ]
        return ScoredObject(
            np.array(objects, dtype=np.int64),
            np.array(scores, dtype=np.float64),
            np.array([latest[key] for key in objects], dtype=np.int64),
        )

    def state(self) -> StateData:
        content = {"closed": self._closed, "rows": list(map(list, self._rows))}
        return with_header("IncompleteOracle", self.config.plain(), content)

    @classmethod
    def restored(cls, config: IncompleteOperatorConfig, state: StateData) -> IncompleteOracle:
        """Return an operator restored from a state."""
        check_header(state, "IncompleteOracle", config.plain())
        oracle = cls(config)
        oracle._closed = state["closed"]
        oracle._rows = [tuple(row) for row in state["rows"]]
        oracle._inside = [row for row in oracle._rows if row[0] <= oracle._closed]
        return oracle


def _aggregate(aggregate: ScoreAggregate, values: Iterable[float]) -> float:
    return sum(values) if aggregate == "sum" else max(values)
