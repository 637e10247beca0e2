"""A run that is fed: its caller gives the elements one by one, and moves event time.

The local driver and Spark pull from sources; this driver has none. Elements are taken in the order
in which they are fed, and the answers that they make due are returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rsp_engine.drivers.intake import EventTime, Intake
from rsp_engine.errors import BindingError, SourceError
from rsp_engine.evaluators.physical_plan import changes_stream
from rsp_engine.io.sources.memory import MemorySource

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from rsp_engine.drivers.splits.split_merger import Item
    from rsp_engine.evaluators.step import Step
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.monitor.run_monitor import Counts
    from rsp_engine.plan.equal_queries import EqualQueries

__all__ = ["FedRun"]


class FedRun:
    """A run in this process whose elements its caller feeds; `Engine.begin` makes it.

    Times are integer milliseconds of event time.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        queries: EqualQueries,
        dead_letter: Callable[[DeadLetter], None],
        max_delay: int,
    ) -> None:
        derived = {step.plan.feeds for step in steps}
        read = dict.fromkeys(stream for step in steps for stream in step.streams)
        self._steps = steps
        self._queries = queries
        self._streams = [stream for stream in read if stream not in derived]
        self._positions = dict.fromkeys(self._streams, 0)
        self._sources = {stream: MemorySource((), stream) for stream in self._streams}
        sources = {stream: [source] for stream, source in self._sources.items()}
        self._intake = Intake(steps, sources, dead_letter, max_delay)
        self._has_ended = False

    @property
    def streams(self) -> list[str]:
        """The streams that can be fed, change streams of services included."""
        return list(self._streams)

    @property
    def counts(self) -> Counts:
        """How many elements, triples and answers have passed through the run so far."""
        return self._intake.counts

    def feed(self, stream: str, timestamp: int, turtle: str) -> list[Answer]:
        """Feed an element; return the answers of the windows that close before it.

        Args:
            stream: The IRI of the stream.
            timestamp: The time of the element, in ms.
            turtle: Its triples, in Turtle. If they are malformed, the element goes to the dead
                letters.

        Raises:
            BindingError: If no query reads the stream.
            SourceError: If the run has ended.
        """
        if stream not in self._positions:
            streams = ", ".join(f"<{name}>" for name in self._streams)
            raise BindingError(f"no query reads stream <{stream}>", f"the queries read {streams}")
        self._positions[stream] += 1
        source = self._sources[stream]
        return self._take([(stream, source.read(self._positions[stream], timestamp, turtle))])

    def change(self, service: str, timestamp: int, turtle: str) -> list[Answer]:
        """Feed an element to the change stream of a service, which `Engine.changes` declared.

        Args:
            service: The IRI of the service.
            timestamp: The time from which the new triples are valid, in ms.
            turtle: The triples, in Turtle.

        Raises:
            BindingError: If the service has no change stream.
            SourceError: If the run has ended.
        """
        stream = changes_stream(service)
        if stream not in self._positions:
            hint = "call engine.changes(iri, []) before the query is registered"
            raise BindingError(f"the service <{service}> has no change stream", hint)
        return self.feed(stream, timestamp, turtle)

    def advance(self, to: int) -> list[Answer]:
        """Let event time pass an instant; return the answers of the windows that close by then.

        No element at or before the instant is on time after it, whatever `max_delay` is: it still
        enters those of its windows that are open.

        Args:
            to: The instant, in ms. One that has passed already changes nothing.

        Raises:
            SourceError: If the run has ended.
        """
        return self._take([(stream, EventTime(to + 1)) for stream in self._streams])

    def end(self) -> list[Answer]:
        """End the streams; return the answers of all windows that hold an element.

        Raises:
            SourceError: If the run has ended.
        """
        answers = self._take([(stream, None) for stream in self._streams])
        self._has_ended = True
        return answers

    def close(self) -> None:
        """Release the resources of the queries."""
        for step in self._steps:
            step.close()

    def _take(self, items: Sequence[tuple[str, Item | EventTime | None]]) -> list[Answer]:
        if self._has_ended:
            raise SourceError("the streams of this run have ended", "begin another run")
        sourced = [
            (stream, item, None if item is None else self._sources[stream])
            for stream, item in items
        ]
        answers = cast("Generator[Answer]", self._intake.take(sourced))
        return list(self._queries.named(answers, self.counts))
