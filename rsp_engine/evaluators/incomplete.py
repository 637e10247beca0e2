"""R2R for ranked queries whose objects have their attributes in several streams.

The windows are matched part by part, and an operator says which objects can be in an answer: the k
best, and all that may be as good. Only their triples are asked, in SPARQL as the query has it, so
that an answer is that of the general path, to the last digit and in the same order.

What is not known beforehand is how large values are, and how often an object has one in a window.
The largest values are declared, or 1; that there is one is a guess. Where either turns out to be
wrong, all observations of the window are given to an operator that knows better. A window in which
float64 would not mean what SPARQL means, or that holds a negative number, is asked as a whole.

The approximate operator does not keep what it would need for that: parts are released once they are
taken, and objects are forgotten that it does not keep. Its answers say that they are approximate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

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
from rsp_engine.operators.sparql.sparql_query import SparqlConfig
from rsp_engine.operators.windows.count_windows import CountScan
from rsp_engine.operators.windows.time_windows import TimeScan

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from rsp_engine.model.answers import Boolean, Graph, Solutions
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.incomplete.observations import IncompleteOperator, ScoreAggregate
    from rsp_engine.operators.sparql.pane_matcher import Matching, SolutionTuple
    from rsp_engine.operators.windows.scan import Scan

__all__ = ["Algorithm", "Attribute", "IncompleteConfig", "IncompleteEvaluator"]

Algorithm = Literal["EAA", "SLA", "approximate", "Oracle"]
_ROUNDING = 1e-9  # of the largest score: so much may float64 and SPARQL differ
_MOST = 10.0**SURE  # sums of larger integers may overflow in SPARQL


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of the objects: which scan has it, and what its observations are.

    `keys` and `value` are places in a solution of `matching`. In the score it has a `weight`; with
    that, `high` is its largest value. Objects without one that is `required` are not ranked.
    """

    scan: int
    matching: Matching
    keys: tuple[int, ...]
    value: int
    weight: float = 1.0
    high: float = 1.0
    required: bool = False


@dataclass(frozen=True, slots=True)
class IncompleteConfig(SparqlConfig):
    """The text is that of the general path: what the query means.

    The k best objects are found by an `algorithm`, the approximate one with at most `bound`
    instances, if there is a bound. Values of several attributes are put together by `function`, and
    those of one attribute by `repeats`. `streams` are where the attributes come from.
    """

    tag: ClassVar[str] = "Collected"

    windows: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    function: ScoreAggregate = "sum"
    repeats: ScoreAggregate = "sum"
    k: int = 1
    algorithm: Algorithm = "EAA"
    bound: int | None = None

    @property
    def is_approximate(self) -> bool:
        """Whether objects may be missed."""
        return self.algorithm == "approximate"


class _Shown(NamedTuple):
    """Some of the content of a window."""

    parts: list[tuple[Any, list[ox.Triple]]]

    def content(self) -> Iterable[tuple[Hashable, Sequence[ox.Triple]]]:
        """Return the parts."""
        return self.parts


class IncompleteEvaluator:
    """Ranks window by window. Memory: the triples and the observations of open windows."""

    def __init__(self, config: IncompleteConfig) -> None:
        self.config = config
        self.may_give_blank_nodes = config.template is not None
        self._matchers = [Matcher(each.matching, ox.Store()) for each in config.attributes]
        self._general: SparqlEvaluator | None = None
        self._highs = [each.high for each in config.attributes]
        self._most = [1 for _ in config.attributes]
        self._held = ObservationStore()
        self._taken: set[tuple[int, ObservedPart]] = set()
        self._odd: dict[tuple[int, ObservedPart], int] = {}
        self._count = 0
        self._operator: IncompleteOperator = self._made()
        self._is_exact = True

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the content of the scans, at an instant."""
        clock = _clock(scans, now)
        self._held.expire(clock)
        contents = [dict(scan.content()) for scan in scans]
        self._take(scans, contents, now)
        is_sure = self._operator.close(clock).is_exact
        near = self._operator.near().tolist()
        self._odd = {part: end for part, end in self._odd.items() if end >= clock}
        if self._odd and not self.config.is_approximate:
            self._is_exact = True
            return self._whole(scans, now)
        self._is_exact = is_sure
        found = self._asked(near, contents, now)
        self._release(scans)
        return found

    def stats(self) -> dict[str, int | bool]:
        """Return what an answer says of itself."""
        if self.config.is_approximate:
            return {"exact": False, "approximate": True}
        return {"exact": self._is_exact}

    def _made(self) -> IncompleteOperator:
        operator: dict[Algorithm, Any] = {"EAA": EAA, "SLA": SLA, "Oracle": IncompleteOracle}
        if self.config.is_approximate:
            return Approximate(self._operator_config, self.config.bound)
        made: IncompleteOperator = operator[self.config.algorithm](self._operator_config)
        return made

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
        """Take the parts that are new; if they break what was guessed, take all that is held."""
        is_broken = False
        present = {(n, part) for n, parts in enumerate(contents) for part in parts}
        for number, part in sorted(present - self._taken, key=_in_time):
            life = _life(scans[number], part)
            is_broken |= self._take_part(number, part, life, contents[number][part], now)
        self._taken = present
        if is_broken:
            self._start_again(_clock(scans, now))

    def _take_part(
        self, scan: int, part: ObservedPart, life: Pane, triples: Sequence[ox.Triple], now: int
    ) -> bool:
        """Take a part of a window, and tell whether it breaks what was guessed."""
        rows: list[tuple[int, int, int, float, int, int]] = []
        is_broken = False
        for number, attribute in enumerate(self.config.attributes):
            if attribute.scan != scan:
                continue
            for solution, value in self._values(number, triples, now):
                if value is None:
                    self._odd[scan, part] = life.last
                    continue
                key = tuple([solution[place] for place in attribute.keys])
                thing = self._held.number(key)
                new = Observation(number, solution, value, life.last, [part])
                since = self._held.take(thing, new)
                if since is None:
                    continue
                is_broken |= self._learn(thing, number, value)
                name = text_hash(row_text(key)) if self.config.is_approximate else thing
                rows.append((number, thing, self._count, value, since, name))
        self._count += 1
        if rows:
            self._operator.arrive(life, as_observations(*map(list, zip(*rows, strict=True))))
        return is_broken

    def _values(
        self, number: int, triples: Sequence[ox.Triple], now: int
    ) -> Iterator[tuple[SolutionTuple, float | None]]:
        """Yield the solutions of an attribute, each once, and its weighted value; none if odd."""
        attribute = self.config.attributes[number]
        matched = self._matchers[number].match(triples, np.zeros(len(triples), np.int64), now)
        found = dict(zip(matched.solutions, matched.numbers.tolist(), strict=True))
        for solution, value in found.items():
            is_plain = are_numbers([solution[attribute.value]]) and 0 <= value < _MOST
            yield solution, attribute.weight * value if is_plain else None

    def _learn(self, thing: int, attribute: int, value: float) -> bool:
        """Guess anew if a value is too large, or one too many; tell whether that was so."""
        count = self._held.count(thing, attribute)
        is_broken = False
        if value > self._highs[attribute]:
            self._highs[attribute] = 2 * value
            is_broken = True
        if count > self._most[attribute]:
            self._most[attribute] = 2 * count
            is_broken = True
        return is_broken

    def _start_again(self, clock: int) -> None:
        """Let an operator that knows better take all that is held."""
        if isinstance(self._operator, Approximate):
            known = {**self._operator_config.plain(), "bound": self.config.bound}
            state = {**self._operator.state(), "config": known}
            self._operator = Approximate.restored(self._operator_config, state, self.config.bound)
            return
        self._operator = self._made()
        rows: dict[int, list[tuple[int, int, int, float]]] = {}
        for thing in self._held.numbers():
            for each in self._held.of(thing):
                rows.setdefault(each.end, []).append((each.attribute, thing, 0, each.value))
        for end, found in rows.items():
            if end >= clock:
                batch = as_observations(*map(list, zip(*found, strict=True)))
                self._operator.arrive(Pane(clock, end), batch)

    def _asked(
        self, near: list[int], contents: Sequence[dict[Any, Any]], now: int
    ) -> Solutions | Graph | Boolean:
        """Ask the triples of a few objects."""
        shown: list[dict[Any, list[ox.Triple]]] = [{} for _ in contents]
        for thing in near:
            for each in self._held.of(thing):
                attribute = self.config.attributes[each.attribute]
                names = attribute.matching.names
                triples = [p.triple(each.solution, names) for p in attribute.matching.patterns]
                for part in each.parts:
                    if part in contents[attribute.scan]:
                        shown[attribute.scan].setdefault(part, []).extend(triples)
        general = SparqlEvaluator(self.config, ox.Store(), self.config.windows)
        found = general.answer([_Shown(sorted(each.items())) for each in shown], now)
        self.may_give_blank_nodes |= general.may_give_blank_nodes
        return found

    def _whole(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Ask the whole content of the windows."""
        if self._general is None:
            self._general = SparqlEvaluator(self.config, ox.Store(), self.config.windows)
        found = self._general.answer(scans, now)
        self.may_give_blank_nodes |= self._general.may_give_blank_nodes
        return found

    def _release(self, scans: Sequence[Scan]) -> None:
        """Forget what the approximate operator does not need."""
        if not isinstance(self._operator, Approximate):
            return
        kept = self._operator.kept()
        for thing in self._held.numbers():
            if thing not in kept:
                self._held.forget(thing)
        for number, part in self._taken:
            scan = scans[number]
            if isinstance(scan, TimeScan) and isinstance(part, Pane):
                scan.release(part)

    def state(self) -> StateData:
        """Return what the windows do not tell; of the approximate operator, everything."""
        found: StateData = {
            "highs": list(self._highs),
            "most": list(self._most),
            "may_give_blank_nodes": self.may_give_blank_nodes,
        }
        if isinstance(self._operator, Approximate):
            taken = sorted(self._taken, key=_in_time)
            found["operator"] = self._operator.state()
            found["held"] = self._held.state()
            found["taken"] = [
                [n, [p.first, p.last] if isinstance(p, Pane) else p] for n, p in taken
            ]
            found["count"] = self._count
        return found

    def restore(self, state: StateData) -> None:
        """Go on from a state. The first answer takes the whole windows, unless approximate."""
        self._highs, self._most = list(state["highs"]), list(state["most"])
        self.may_give_blank_nodes = state["may_give_blank_nodes"]
        self._held, self._taken, self._odd = ObservationStore(), set(), {}
        self._operator = self._made()
        if self.config.is_approximate:
            self._operator = Approximate.restored(
                self._operator_config, state["operator"], self.config.bound
            )
            self._held.restore(state["held"])
            self._taken = {(n, Pane(*p) if isinstance(p, list) else p) for n, p in state["taken"]}
            self._count = state["count"]


def _in_time(taken: tuple[int, ObservedPart]) -> tuple[Any, int]:
    number, part = taken
    return part, number


def _clock(scans: Sequence[Scan], now: int) -> int:
    """Return what the operator knows an evaluation by: an instant from t0, or a window that counts.

    Windows over time may be of any sizes; one that counts is the only one.
    """
    [first, *_] = scans
    if isinstance(first, TimeScan):
        return now - first.frame.t0
    return first.closed


def _life(scan: Scan, part: ObservedPart) -> Pane:
    """Return from when to when a part is in the window, as the operator knows evaluations."""
    if isinstance(part, Pane):
        assert isinstance(scan, TimeScan), "panes are of windows over time"  # noqa: S101
        frame = scan.frame
        first, after = (frame.interval(n).close - frame.t0 for n in (part.first, part.last + 1))
        return Pane(first, after - 1)
    assert isinstance(scan, CountScan), "numbers are of windows that count"  # noqa: S101
    size, step = scan.frame.size, scan.frame.step
    return Pane(max(0, (part - size) // step + 1), part // step)
