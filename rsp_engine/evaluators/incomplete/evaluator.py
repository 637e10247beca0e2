"""The incomplete top-k evaluator: ranked objects whose attributes arrive in several streams.

Windows are matched part by part, and an operator finds the objects that can be in an answer: the
top k, and all that may tie with them. The query is evaluated in SPARQL over the triples of these
objects only, so an answer equals that of the general path, to the last digit and in the same order.

Two bounds are not known beforehand: the largest value of an attribute, and how many values of an
attribute an object has in a window. The first is declared, or assumed to be 1; the second is
assumed to be 1. If either is exceeded, a new operator with larger bounds gets all observations of
the window again. A window with a negative number, or with values for which float64 and SPARQL
differ, is evaluated as a whole.

The approximate operator cannot do that, since it releases parts once they are processed, and
forgets objects that it does not keep. Its answers are marked as approximate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyoxigraph as ox

from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.model.terms.numerals import SURE
from rsp_engine.model.windows import Pane
from rsp_engine.operators.incomplete.approximate import Approximate
from rsp_engine.operators.incomplete.eaa import EAA
from rsp_engine.operators.incomplete.hashing import text_hash
from rsp_engine.operators.incomplete.observation_store import (
    Observation,
    ObservationStore,
    ObservedPart,
)
from rsp_engine.operators.incomplete.observations import IncompleteOperatorConfig, as_observations
from rsp_engine.operators.incomplete.oracle import IncompleteOracle
from rsp_engine.operators.incomplete.sla import SLA
from rsp_engine.operators.scoring.term_scores import are_numbers
from rsp_engine.operators.sparql.pane_matcher import Matcher
from rsp_engine.operators.windows.count_windows import CountScan
from rsp_engine.operators.windows.time_windows import TimeScan

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from rsp_engine.evaluators.incomplete.config import IncompleteConfig
    from rsp_engine.model.answers import Boolean, Graph, Solutions
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.incomplete.observations import IncompleteOperator
    from rsp_engine.operators.sparql.pane_matcher import SolutionTuple
    from rsp_engine.operators.windows.scan import Scan

__all__ = ["IncompleteEvaluator"]

_ROUNDING = 1e-9  # relative to the largest score: the difference of float64 and SPARQL
_MOST = 10.0**SURE  # sums of larger integers may overflow in SPARQL


class _PartialContent(NamedTuple):
    """A part of the content of a window."""

    parts: list[tuple[Any, list[ox.Triple]]]

    def content(self) -> Iterable[tuple[Hashable, Sequence[ox.Triple]]]:
        """Return the parts."""
        return self.parts


class IncompleteEvaluator:
    """Ranks objects per window. Memory: the triples and the observations of open windows."""

    def __init__(self, config: IncompleteConfig) -> None:
        self.config = config
        self.may_give_blank_nodes = config.query.template is not None
        self._matchers = [Matcher(each.matching, ox.Store()) for each in config.attributes]
        self._general: SparqlEvaluator | None = None
        # The assumed bounds per attribute: the largest value, and the values of an object.
        self._highs = [each.high for each in config.attributes]
        self._most = [1 for _ in config.attributes]
        self._observations = ObservationStore()
        self._taken: set[tuple[int, ObservedPart]] = set()
        # Parts with a value that only SPARQL can rank, and the last evaluation with each.
        self._odd: dict[tuple[int, ObservedPart], int] = {}
        self._count = 0
        self._operator: IncompleteOperator = self._new_operator()
        self._is_exact = True

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the scans, at an instant."""
        clock = _clock(scans, now)
        self._observations.expire(clock)
        contents = [dict(scan.content()) for scan in scans]
        self._take(scans, contents, now)
        is_exact = self._operator.close(clock).is_exact
        near = self._operator.near().tolist()
        self._odd = {part: end for part, end in self._odd.items() if end >= clock}
        if self._odd and not self.config.is_approximate:
            self._is_exact = True
            return self._whole(scans, now)
        self._is_exact = is_exact
        answer = self._answer_over(near, contents, now)
        self._release(scans)
        return answer

    def stats(self) -> dict[str, int | bool]:
        """Return the statistics of the last answer."""
        if self.config.is_approximate:
            return {"exact": False, "approximate": True}
        return {"exact": self._is_exact}

    def _new_operator(self) -> IncompleteOperator:
        operators: dict[str, Any] = {"EAA": EAA, "SLA": SLA, "Oracle": IncompleteOracle}
        if self.config.is_approximate:
            return Approximate(self._operator_config, self.config.bound)
        operator: IncompleteOperator = operators[self.config.algorithm](self._operator_config)
        return operator

    @property
    def _operator_config(self) -> IncompleteOperatorConfig:
        config, highs = self.config, self._highs
        required = tuple(n for n, each in enumerate(config.attributes) if each.required)
        by_window = bool(required) or not config.is_approximate
        scale = sum(high * most for high, most in zip(highs, self._most, strict=True))
        return IncompleteOperatorConfig(
            config.k,
            tuple(highs),
            tuple(self._most),
            config.function,
            config.repeats,
            required,
            "window" if by_window else "life",
            _ROUNDING * scale,
        )

    def _take(
        self, scans: Sequence[Scan], contents: Sequence[dict[Any, Sequence[ox.Triple]]], now: int
    ) -> None:
        """Add new parts; if they exceed a bound, start again with all observations."""
        is_exceeded = False
        present = {(n, part) for n, parts in enumerate(contents) for part in parts}
        for number, part in sorted(present - self._taken, key=_time_order):
            life = _life(scans[number], part)
            is_exceeded |= self._take_part(number, part, life, contents[number][part], now)
        self._taken = present
        if is_exceeded:
            self._start_again(_clock(scans, now))

    def _take_part(
        self, scan: int, part: ObservedPart, life: Pane, triples: Sequence[ox.Triple], now: int
    ) -> bool:
        """Add a part of a window; return whether it exceeds a bound."""
        rows: list[tuple[int, int, int, float, int, int]] = []
        is_exceeded = False
        for number, attribute in enumerate(self.config.attributes):
            if attribute.scan != scan:
                continue
            for solution, value in self._values(number, triples, now):
                if value is None:
                    self._odd[scan, part] = life.last
                    continue
                key = tuple([solution[place] for place in attribute.keys])
                item = self._observations.number(key)
                new = Observation(number, solution, value, life.last, [part])
                since = self._observations.take(item, new)
                if since is None:
                    continue
                is_exceeded |= self._raise_bounds(item, number, value)
                name = text_hash(row_text(key)) if self.config.is_approximate else item
                rows.append((number, item, self._count, value, since, name))
        self._count += 1
        if rows:
            self._operator.arrive(life, as_observations(*map(list, zip(*rows, strict=True))))
        return is_exceeded

    def _values(
        self, number: int, triples: Sequence[ox.Triple], now: int
    ) -> Iterator[tuple[SolutionTuple, float | None]]:
        """Yield the distinct solutions of an attribute with their weighted values; None if odd."""
        attribute = self.config.attributes[number]
        matched = self._matchers[number].match(triples, np.zeros(len(triples), np.int64), now)
        distinct = dict(zip(matched.solutions, matched.numbers.tolist(), strict=True))
        for solution, value in distinct.items():
            is_plain = are_numbers([solution[attribute.value]]) and 0 <= value < _MOST
            yield solution, attribute.weight * value if is_plain else None

    def _raise_bounds(self, item: int, attribute: int, value: float) -> bool:
        """Raise a bound that is exceeded to twice the new value; return whether one was."""
        count = self._observations.count(item, attribute)
        is_exceeded = False
        if value > self._highs[attribute]:
            self._highs[attribute] = 2 * value
            is_exceeded = True
        if count > self._most[attribute]:
            self._most[attribute] = 2 * count
            is_exceeded = True
        return is_exceeded

    def _start_again(self, clock: int) -> None:
        """Replace the operator by one with the new bounds, and pass it all observations."""
        if isinstance(self._operator, Approximate):
            config = {**self._operator_config.plain(), "bound": self.config.bound}
            state = {**self._operator.state(), "config": config}
            self._operator = Approximate.restored(self._operator_config, state, self.config.bound)
            return
        self._operator = self._new_operator()
        rows: dict[int, list[tuple[int, int, int, float]]] = {}
        for item in self._observations.numbers():
            for each in self._observations.of(item):
                rows.setdefault(each.end, []).append((each.attribute, item, 0, each.value))
        for end, same_end in rows.items():
            if end >= clock:
                batch = as_observations(*map(list, zip(*same_end, strict=True)))
                self._operator.arrive(Pane(clock, end), batch)

    def _answer_over(
        self, near: list[int], contents: Sequence[dict[Any, Any]], now: int
    ) -> Solutions | Graph | Boolean:
        """Evaluate the query over the triples of a few objects."""
        shown: list[dict[Any, list[ox.Triple]]] = [{} for _ in contents]
        for item in near:
            for each in self._observations.of(item):
                attribute = self.config.attributes[each.attribute]
                names = attribute.matching.names
                triples = [p.triple(each.solution, names) for p in attribute.matching.patterns]
                for part in each.parts:
                    if part in contents[attribute.scan]:
                        shown[attribute.scan].setdefault(part, []).extend(triples)
        general = SparqlEvaluator(self.config.query, ox.Store(), self.config.windows)
        answer = general.answer([_PartialContent(sorted(each.items())) for each in shown], now)
        self.may_give_blank_nodes |= general.may_give_blank_nodes
        return answer

    def _whole(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Evaluate the query over the whole content of the windows."""
        if self._general is None:
            self._general = SparqlEvaluator(self.config.query, ox.Store(), self.config.windows)
        answer = self._general.answer(scans, now)
        self.may_give_blank_nodes |= self._general.may_give_blank_nodes
        return answer

    def _release(self, scans: Sequence[Scan]) -> None:
        """Forget objects and triples that the approximate operator does not need."""
        if not isinstance(self._operator, Approximate):
            return
        kept = self._operator.kept()
        for item in self._observations.numbers():
            if item not in kept:
                self._observations.forget(item)
        for number, part in self._taken:
            scan = scans[number]
            if isinstance(scan, TimeScan) and isinstance(part, Pane):
                scan.release(part)

    def state(self) -> StateData:
        """Return what the windows do not restore: the bounds, and an approximate operator."""
        state: StateData = {
            "highs": list(self._highs),
            "most": list(self._most),
            "may_give_blank_nodes": self.may_give_blank_nodes,
        }
        if isinstance(self._operator, Approximate):
            taken = sorted(self._taken, key=_time_order)
            state["operator"] = self._operator.state()
            state["held"] = self._observations.state()
            state["taken"] = [
                [n, [p.first, p.last] if isinstance(p, Pane) else p] for n, p in taken
            ]
            state["count"] = self._count
        return state

    def restore(self, state: StateData) -> None:
        """Restore a saved state. Unless approximate, the first answer reads the whole windows."""
        self._highs, self._most = list(state["highs"]), list(state["most"])
        self.may_give_blank_nodes = state["may_give_blank_nodes"]
        self._observations, self._taken, self._odd = ObservationStore(), set(), {}
        self._operator = self._new_operator()
        if self.config.is_approximate:
            self._operator = Approximate.restored(
                self._operator_config, state["operator"], self.config.bound
            )
            self._observations.restore(state["held"])
            self._taken = {(n, Pane(*p) if isinstance(p, list) else p) for n, p in state["taken"]}
            self._count = state["count"]


def _time_order(taken: tuple[int, ObservedPart]) -> tuple[Any, int]:
    number, part = taken
    return part, number


def _clock(scans: Sequence[Scan], now: int) -> int:
    """Return the operator's number of an evaluation: the time since t0, or the count window.

    There may be several time windows, of any sizes; a count window is the only window.
    """
    [first, *_] = scans
    if isinstance(first, TimeScan):
        return now - first.frame.t0
    return first.closed


def _life(scan: Scan, part: ObservedPart) -> Pane:
    """Return the first and last evaluation with a part in the window, as operator numbers."""
    if isinstance(part, Pane):
        assert isinstance(scan, TimeScan), "panes are parts of time windows"  # noqa: S101
        frame = scan.frame
        first, after = (frame.interval(n).close - frame.t0 for n in (part.first, part.last + 1))
        return Pane(first, after - 1)
    assert isinstance(scan, CountScan), "numbers are parts of count windows"  # noqa: S101
    size, step = scan.frame.size, scan.frame.step
    return Pane(max(0, (part - size) // step + 1), part // step)
