"""The intake: the items of merged sources enter the queries, and the answers that are due leave.

An item is a segment of a split, or a single element. Each goes to every query that reads its
stream. The answers of a registered CONSTRUCT are the elements of a derived stream, named like the
query.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.drivers.splits.segments import Segment
from rsp_engine.drivers.splits.split_merger import Silence
from rsp_engine.errors import BindingError
from rsp_engine.evaluators.step import due_at_instants, due_together
from rsp_engine.io.blank_nodes import ElementNames, within_stream
from rsp_engine.io.canonical_literals import TripleTermError, canonical_triples
from rsp_engine.model.answers import Answer, Graph
from rsp_engine.model.state import check_header, damage_guard, with_header
from rsp_engine.model.streams import DeadLetter, Element
from rsp_engine.model.watermarks import Watermarks
from rsp_engine.model.windows import TimeFrame
from rsp_engine.monitor.run_monitor import Counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyoxigraph import Triple

    from rsp_engine.drivers.panes.distributed_step import DistributedStep
    from rsp_engine.drivers.replay_clock import ReplayClock
    from rsp_engine.drivers.splits.split_merger import Item
    from rsp_engine.evaluators.step import PendingAnswer, Step
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.model.state import StateData

__all__ = ["EventTime", "Intake"]


class EventTime(NamedTuple):
    """An item that moves event time: no element of its stream before `watermark` will follow."""

    watermark: int


class Intake:
    """The intake of a run: its queries, the watermarks of their streams, and its counts."""

    def __init__(
        self,
        steps: Sequence[Step],
        sources: Mapping[str, Sequence[ElementSource]],
        dead_letter: Callable[[DeadLetter], None],
        max_delay: int = 0,
        replay_clock: ReplayClock | None = None,
    ) -> None:
        """Set up the queries and their sources; a `replay_clock` paces the elements."""
        self.counts = Counts()
        self._replay_clock = replay_clock
        self._by_number = steps
        self._steps = sorted_by_dependency(steps)
        self._groups = groups_by_dependency(group_by_shared_state(self._steps))
        self._awaited = {
            id(step): tuple(dict.fromkeys(s for each in group for s in each.streams))
            if step.budgets
            else step.streams
            for group in self._groups
            for step in group
        }
        """The streams that each query waits for: if it shares a budget, those of all that do."""
        self.distributed: Mapping[int, DistributedStep] = {}
        """The steps whose content may be stored in files, by the number of the query."""
        self._dead_letter = dead_letter
        self._max_delay = max_delay
        streams = [*sources, *(s.plan.feeds for s in steps if s.plan.feeds is not None)]
        self._watermarks = Watermarks(streams, max_delay)
        self._has_feeds = any(step.plan.feeds is not None for step in steps)
        self._readers = {
            stream: [s for s in self._steps if stream in s.streams] for stream in streams
        }
        self._numbers = {stream: number for number, stream in enumerate(sources)}
        self.names = {stream: ElementNames(stream) for stream in streams}
        """The names of the blank nodes of elements, by stream."""

    def take(
        self, items: Iterable[tuple[str, Item | Silence | EventTime | None, ElementSource | None]]
    ) -> Iterator[Answer | PendingAnswer]:
        """Yield the answers that the items of merged sources make due; it can be called again."""
        for stream, item, source in items:
            if self._replay_clock is not None and isinstance(item, Segment | Element):
                self._replay_clock.wait(item.timestamp)
            if source is None:
                self._watermarks.end(stream)
                yield from self._advance()
            elif isinstance(item, Silence):
                self._watermarks.rest(stream)
                yield from self._advance()
            elif isinstance(item, EventTime):
                self._watermarks.raise_to(stream, item.watermark)
                yield from self._advance()
            elif isinstance(item, Segment):
                yield from self._take_segment(stream, item)
            elif isinstance(item, Element):
                yield from self._take(stream, item, source)
            elif item is not None:
                self._set_aside(item)

    def watermarks(self) -> dict[str, float]:
        """Return the watermark of each query. Other threads may call this."""
        return {
            step.plan.name: self._watermarks.seen(self._streams(step)) for step in self._by_number
        }

    def watermark_of(self, number: int) -> float:
        """Return the watermark of a query, by its number."""
        return self._watermarks.seen(self._by_number[number].streams)

    def state(self) -> StateData:
        """Return the state of the driver without its steps, as plain data, between two items."""
        content = {
            "watermarks": self._watermarks.state(),
            "names": {stream: names.state() for stream, names in self.names.items()},
            "counts": asdict(self.counts),
        }
        return with_header("LocalDriver", self._config(), content)

    def restore(self, state: StateData) -> None:
        """Resume from a state of the same queries and streams; steps are restored separately."""
        check_header(state, "LocalDriver", self._config())
        with damage_guard("the driver"):
            self._watermarks.restore(state["watermarks"])
            for stream, names in self.names.items():
                names.restore(state["names"][stream])
            for name in asdict(self.counts):
                setattr(self.counts, name, state["counts"][name])

    def _config(self) -> dict[str, Any]:
        queries = [step.plan.name for step in self._steps]
        return {"queries": queries, "streams": list(self.names), "max_delay": self._max_delay}

    def _take(
        self, stream: str, element: Element, source: ElementSource
    ) -> Iterator[Answer | PendingAnswer]:
        yield from self._raise_watermark(stream, element)
        try:
            triples = self._with_names(stream, element, source)
        except TripleTermError as error:
            self._set_aside(element.set_aside(f"unsupported: {error}"))
        else:
            self._offer(stream, element, triples)

    def _take_segment(self, stream: str, segment: Segment) -> Iterator[Answer | PendingAnswer]:
        """Take a segment of a split; all windows that hold one of its elements are open."""
        self.counts.elements += segment.elements
        self.counts.triples += segment.triples
        self.counts.between_windows += segment.between_windows
        if self._watermarks.see(stream, segment.timestamp) and self._may_be_due():
            yield from self._advance()
        for content in segment.pane_contents:
            self._by_number[content.step].put(content.scan, content.pane, content.content)
        for manifest in segment.stored:
            self.distributed[manifest.step].put_stored(
                manifest.scan, manifest.pane, manifest.content
            )
        # No window closes after the first element. Earlier ones may be due only now: with the
        # report `every`, empty windows wait until it is known that they lie between others.
        if self._watermarks.see(stream, segment.high) and self._may_be_due():
            yield from self._advance()

    def _raise_watermark(self, stream: str, element: Element) -> Iterator[Answer | PendingAnswer]:
        """Raise the watermark to an element, and yield the answers that this makes due."""
        self.counts.elements += 1
        self.counts.triples += len(element.triples)
        if self._watermarks.see(stream, element.timestamp) and self._may_be_due():
            yield from self._advance()

    def _streams(self, step: Step) -> Sequence[str]:
        return self._awaited[id(step)]

    def _watermark(self, step: Step) -> float:
        return self._watermarks.of(self._awaited[id(step)])

    def _may_be_due(self) -> bool:
        """Return whether an answer may be due, by a quick check."""
        for step in self._steps:
            if step.may_be_due(self._watermark(step)):
                return True
        return self._has_feeds

    def _with_names(self, stream: str, element: Element, source: ElementSource) -> Sequence[Triple]:
        """Return the triples of an element, with blank nodes named by their scope."""
        if source.blank_node_scope == "stream":
            return self._with_stream_labels(stream, element.triples, element.raw)
        return self.names[stream].rename(element.timestamp, canonical_triples(element.triples))

    def _with_stream_labels(
        self, stream: str, triples: Sequence[Triple], raw: bytes
    ) -> Sequence[Triple]:
        """Return triples whose blank node labels are scoped to the stream; `raw` is their text."""
        triples = canonical_triples(triples)
        has_labels = b"_" in raw and b"_:" in raw  # a single byte is much faster to find
        return within_stream(triples, self._numbers[stream]) if has_labels else triples

    def _offer(self, stream: str, element: Element, triples: Sequence[Triple]) -> None:
        """Give an element to the queries; it becomes a dead letter if all of them refuse it."""
        readers = self._readers[stream]
        refusals = []
        for step in readers:
            watermark = self._watermark(step)
            refusal = step.take(stream, element.timestamp, triples, watermark)
            if refusal is not None:
                refusals.append(refusal)
        if len(refusals) < len(readers):
            return
        faults = [refusal.reason for refusal in refusals if refusal.is_fault]
        if faults:
            self._set_aside(element.set_aside(faults[0]))
        else:
            self.counts.between_windows += 1

    def _set_aside(self, letter: DeadLetter) -> None:
        self.counts.dead[letter.kind] = self.counts.dead.get(letter.kind, 0) + 1
        self._dead_letter(letter)

    def _advance(self) -> Iterator[Answer | PendingAnswer]:
        """Yield the answers that are due, those first that other queries read."""
        for group in self._groups:
            watermarks = [self._watermark(step) for step in group]
            if any(s.may_be_due(w) for s, w in zip(group, watermarks, strict=True)):
                yield from self._answers(group, watermarks)
            for step, watermark in zip(group, watermarks, strict=True):
                if step.plan.feeds is not None:
                    self._watermarks.raise_to(step.plan.feeds, step.waits_for(watermark))

    def _answers(
        self, group: Sequence[Step], watermarks: Sequence[float]
    ) -> Iterator[Answer | PendingAnswer]:
        if group[0].budgets:
            due = due_at_instants(group, watermarks[0])
        else:
            due = due_together(group, watermarks)
        for step, answer in due:
            self.counts.answers += 1
            self._feed(step, answer)
            yield answer
        for stream in {stream for step in group for stream in step.streams}:
            self._forget_names(stream)

    def _forget_names(self, stream: str) -> None:
        """Forget the names of elements before all open windows: no equal element can follow."""
        readers = self._readers[stream]
        frames = [scan.frame for s in readers for scan in s.plan.scans if scan.stream == stream]
        ranges = (frame.range for frame in frames if isinstance(frame, TimeFrame))
        size = max(ranges, default=0)
        self.names[stream].forget(min(map(self._watermark, readers)) - size)

    def _feed(self, step: Step, answer: Answer | PendingAnswer) -> None:
        stream = step.plan.feeds
        if stream is None or not self._readers[stream]:
            return
        assert isinstance(answer, Answer), "queries that are read answer at once"  # noqa: S101
        if not isinstance(answer.content, Graph):
            return
        text = "".join(f"{triple} .\n" for triple in answer.content.triples)
        element = Element(answer.window.close, answer.content.triples, stream, 1, text.encode())
        self._offer(stream, element, self.names[stream].rename(element.timestamp, element.triples))


def group_by_shared_state(steps: Sequence[Step]) -> list[list[Step]]:
    """Group the steps that share state, in the order of the first step of each group."""
    groups: list[tuple[set[int], list[Step]]] = []
    for step in steps:
        shared = {id(step if step.shares is None else step.shares), *map(id, step.budgets)}
        joined = [group for group in groups if group[0] & shared]
        if not joined:
            groups.append((shared, [step]))
            continue
        first, *others = joined
        for group in (*others, (shared, [step])):
            first[0].update(group[0])
            first[1].extend(group[1])
        groups = [group for group in groups if group not in others]
    return [sorted(group, key=steps.index) for _, group in groups]


def groups_by_dependency(groups: Sequence[list[Step]]) -> list[list[Step]]:
    """Sort the groups so that each follows those whose answers it reads."""
    left, ordered = list(groups), []
    while left:
        fed = {step.plan.feeds for group in left for step in group} - {None}
        ready = [g for g in left if not fed & {s for step in g for s in step.streams}]
        if not ready:
            names = ", ".join(sorted(step.plan.name for group in left for step in group))
            raise BindingError(
                f"these queries share the budget of a service, and one needs another's answers:"
                f" {names}",
                "run the query that reads the other's answers on its own",
            )
        ordered += ready
        left = [group for group in left if group not in ready]
    return ordered


def sorted_by_dependency(steps: Iterable[Step]) -> list[Step]:
    """Sort the steps so that each follows those whose answers it reads; refuse a cycle."""
    left = list(steps)
    ordered: list[Step] = []
    while left:
        fed = {step.plan.feeds for step in left} - {None}
        ready = [step for step in left if not fed & set(step.streams)]
        if not ready:
            names = ", ".join(sorted(step.plan.name for step in left))
            raise BindingError(f"these queries read each other's answers in a circle: {names}")
        ordered += ready
        left = [step for step in left if step not in ready]
    return ordered
