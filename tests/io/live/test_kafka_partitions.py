"""Partitions that are each in order are together the stream in order, however they grow."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.io.sources.live.kafka import topic as kafka
from rsp_engine.io.sources.live.kafka.client import TopicAddress
from rsp_engine.io.sources.live.kafka.topic import TopicSource
from rsp_engine.io.sources.live.kafka.watch import PartitionExtent, Presence
from rsp_engine.io.sources.live.payloads import Payloads
from rsp_engine.io.sources.live.records import Message, SpoolRecord
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EX = "http://example.org/"
QUERY = f"""PREFIX : <{EX}> SELECT ?v FROM NAMED WINDOW :w ON STREAM :s [RANGE 10ms STEP 10ms]
WHERE {{ WINDOW :w {{ ?s :v ?v }} }}"""
LAST = 200
"""The close of a window that each partition has a message in, and passes with its last one."""


class GrowingLog:
    """The partitions of a topic in memory, as a watch that finds more of them at each look."""

    is_away = False
    presence = Presence()
    failure = None

    def __init__(self, times: Sequence[Sequence[int]], steps: Sequence[Sequence[int]]) -> None:
        """Set the times of the messages, and how far each partition goes at each look."""
        self.logs = [[*sorted(each), LAST, LAST + 1] for each in times]
        self._steps = iter(steps)
        self._ends = [0] * len(times)

    @property
    def extents(self) -> Mapping[int, PartitionExtent]:
        step = next(self._steps, [len(log) for log in self.logs])
        pairs = zip(self._ends, step, self.logs, strict=True)
        self._ends = [min(len(log), max(end, more)) for end, more, log in pairs]
        # A partition is added when it has its first message; the first is always there.
        known = max(n for n, end in enumerate(self._ends) if end or n == 0)
        return {n: PartitionExtent(0, end, 0) for n, end in enumerate(self._ends[: known + 1])}

    def wait_for_change(self, _known: object, _seconds: float) -> None:
        """Return at once: the next look finds more."""

    def close(self) -> None:
        """Do nothing."""

    def join(self, timeout: float) -> None:
        """Do nothing."""

    def read(self, _address: object, partition: int, split: Any) -> list[SpoolRecord]:
        """Return the messages of a range of offsets."""
        records = []
        for offset in range(split.start, split.end):
            time = self.logs[partition][offset]
            number = 1_000 * partition + offset
            text = f"<{EX}at{time}> <{EX}v> {number} ."
            message = Message(text.encode(), key=str(time).encode())
            records.append(SpoolRecord(offset, time, message))
        return records


def _begin(topic: TopicSource, log: GrowingLog, _folder: object, *, is_kept: bool) -> None:
    """Watch a log in place of a topic."""
    assert not is_kept
    topic._watch = log  # type: ignore[assignment]


def answered(log: GrowingLog) -> dict[int, set[int]]:
    """Return the values of each window, by its close, as an engine answers them."""
    topic = TopicSource(
        TopicAddress("kafka://test", "test", {}, ""),
        Payloads("kafka://test", "turtle", "key"),
        idle=3_600_000,
    )
    engine = Engine()
    engine.register(QUERY)
    engine.bind(f"{EX}s", topic)
    found: dict[int, set[int]] = {}
    begin = partial(_begin, topic, log)
    with patch.object(kafka, "read_range", log.read), patch.object(topic, "begin", begin):
        for answer in engine.run():
            rows: Any = answer.content
            found[answer.window.close] = {int(row.bindings["v"].value) for row in rows.rows}
            if answer.window.close == LAST:
                engine.stop()
    assert engine.counts.dead == {}
    return found


def expected(log: GrowingLog) -> dict[int, set[int]]:
    """Return the values of each window (o, o + 10]."""
    windows = defaultdict(set)
    for partition, times in enumerate(log.logs):
        for offset, time in enumerate(times):
            windows[(time + 9) // 10 * 10].add(1_000 * partition + offset)
    return dict(windows)


partitions = st.lists(st.lists(st.integers(1, LAST), max_size=12), min_size=1, max_size=4)


@given(st.data())
@examples(150)
def test_the_answers_are_those_of_the_stream_in_order(data):
    """A later look may find more of some partitions and nothing of others, and new partitions."""
    times = data.draw(partitions)
    counts = st.lists(st.integers(0, 14), min_size=len(times), max_size=len(times))
    steps = data.draw(st.lists(counts, max_size=5).filter(_keeps_all_from_the_first_look))
    log = GrowingLog(times, steps)
    assert answered(log) == expected(log)


def _keeps_all_from_the_first_look(steps: Sequence[Sequence[int]]) -> bool:
    """Return whether all partitions are there from the start: one that is added later is late."""
    return not steps or all(steps[0])
