"""The outbox on disk: what is committed is delivered, once or with its id again, and nothing else.

A list is the oracle: what was put in before the last commit, in order.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.drivers.checkpoint.outbox import SpooledOutbox
from rsp_engine.engine import Engine
from rsp_engine.errors import DriverError, StateError
from rsp_engine.io.sinks.delivery.courier import Delivery
from rsp_engine.io.sinks.delivery.message_sink import MessageSink, drain
from rsp_engine.io.sources.live import spool
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Sequence


class Story:
    """An outbox that is killed and opened again, with the position of the last commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.committed: list[Delivery] = []
        self.pending: list[Delivery] = []
        self.delivered: list[Delivery] = []
        self.position: list[int] | None = None
        self.numbers = count()
        self.begin()

    def begin(self) -> None:
        self.outbox = SpooledOutbox(self.folder, room=1_000)
        self.outbox.go_back(self.position)
        self.outbox.committed()
        self.pending = []
        self.repeats_from = len(self.delivered)

    def put(self, size: int) -> None:
        number = next(self.numbers)
        self.pending.append(Delivery(f"q/{number}", b"%d " % number * size))
        self.outbox.put(self.pending[-1])

    def sync(self) -> None:
        """Write what was put in, and break off before the state is committed."""
        self.outbox.position()

    def commit(self) -> None:
        self.position = self.outbox.position()
        self.committed += self.pending
        self.pending = []
        self.outbox.committed()

    def deliver(self, most: int) -> None:
        taken = self.outbox.take(most, 0)
        done = self.done
        assert list(taken) == self.committed[done : done + len(taken)]
        assert (len(taken) > 0) == (done < len(self.committed))
        self.delivered += taken
        if taken:
            self.outbox.acknowledge(len(taken))
            assert self.outbox.waiting().deliveries == len(self.committed) - done - len(taken)

    @property
    def done(self) -> int:
        """How many are delivered, as the process that has the outbox now knows."""
        return len(self.committed) - self.outbox.waiting().deliveries

    def kill(self) -> None:
        """End without a word: nothing is closed but what the system closes."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SpooledOutbox, "_write_note", lambda _: None)
            self.outbox.close()
        self.begin()

    def close(self) -> None:
        before = self.done
        self.outbox.close()
        self.begin()
        assert self.done == before, "an orderly end repeats nothing"


steps = st.lists(
    st.tuples(st.just("put"), st.integers(1, 40))
    | st.tuples(st.just("deliver"), st.integers(1, 4))
    | st.tuples(st.sampled_from(["sync", "commit", "commit", "kill", "close"]), st.none()),
    min_size=5,
    max_size=60,
)


@given(steps)
@examples(150)
def test_what_is_committed_is_delivered_in_order_whatever_breaks_off(steps):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "LEAST_FILE_BYTES", 200)
        patch.setattr(os, "fsync", lambda _: None)  # it is slow, and nobody cuts the power
        story = Story(Path(folder) / "outbox")
        for step, value in steps:
            getattr(story, step)(*(() if value is None else (value,)))
        while story.done < len(story.committed):
            story.deliver(3)
        first = dict.fromkeys(each.id for each in story.delivered)
        assert list(first) == [each.id for each in story.committed], "in order, and none is lost"
        assert set(story.delivered) == set(story.committed), "equal ids have equal content"
        story.outbox.close()


def test_an_outbox_is_full_when_its_room_is_used_up_and_not_before(tmp_path):
    story = Story(tmp_path)
    count = 0
    while not story.outbox.is_full:
        story.put(100)
        count += 1
    assert count > 1
    assert 1_000 <= story.outbox._pending_bytes < 1_500
    story.commit()
    assert story.outbox.is_full, "what is committed waits still"
    story.deliver(1_000)
    assert not story.outbox.is_full


def test_files_of_what_was_delivered_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "LEAST_FILE_BYTES", 500)
    story = Story(tmp_path)
    for _ in range(50):
        story.put(100)
        story.commit()
        story.deliver(10)
    assert len(list(tmp_path.glob("*.spool"))) <= 2
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5_000


def test_an_outbox_whose_end_is_gone_is_refused(tmp_path):
    story = Story(tmp_path)
    story.put(10)
    story.commit()
    story.outbox.close()
    next(tmp_path.glob("*.spool")).write_bytes(b"")
    with pytest.raises(StateError, match=r"ends at byte 0, and at .* when the run stopped"):
        story.begin()


def test_two_processes_do_not_deliver_from_one_outbox(tmp_path):
    story = Story(tmp_path)
    with pytest.raises(DriverError, match="of a run that is still active"):
        SpooledOutbox(tmp_path).go_back(None)
    story.outbox.close()


def test_a_full_disk_is_told_and_what_waits_is_committed_once_there_is_room(tmp_path, monkeypatch):
    story = Story(tmp_path)
    story.put(10)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(spool.os, "fsync", full)  # type: ignore[attr-defined]
        with pytest.raises(DriverError, match="No space left on device"):
            story.outbox.position()
    story.put(10)
    story.commit()
    story.deliver(5)
    assert [each.id for each in story.delivered] == ["q/0", "q/1"]
    story.outbox.close()


QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :all AS SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE 1s STEP 1s]
WHERE { WINDOW :w { ?s :p ?v } }"""


class Taker:
    """A courier that remembers what it takes."""

    most = 10

    def __init__(self) -> None:
        self.taken: list[Delivery] = []

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        self.taken += deliveries

    def close(self) -> None:
        """Nothing is open."""


def test_a_run_whose_disk_is_full_for_a_while_delivers_every_answer(tmp_path, monkeypatch, caplog):
    """Neither the outbox nor the state can be written for some commits; the room is small."""
    monkeypatch.setattr("rsp_engine.drivers.local._COMMIT_S", 0)
    lines = (
        f'<http://example.org/a> <http://example.org/p> "{n}" <http://example.org/g/{1000 * n}> .\n'
        for n in range(1, 151)
    )
    (tmp_path / "s.nq").write_text("".join(lines))
    engine = Engine(runner="local", checkpoint=tmp_path / "state", split_bytes=2_000)
    engine.register(QUERY)
    engine.bind("http://example.org/s", str(tmp_path / "s.nq"))
    calls = count()

    def full(_: int) -> None:
        if 20 <= next(calls) < 40:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    taker, outbox = Taker(), SpooledOutbox(tmp_path / "outbox", room=1_500)
    sink = MessageSink("taker", "jsonl", lambda answer, name: name, outbox, taker)
    expected = []
    for answer in engine.run([sink]):
        sink.write(answer)
        expected.append(
            f"http%3A%2F%2Fexample.org%2Fall/{answer.window.open}/{answer.window.close}"
        )
    drain([sink], 20)
    sink.close()
    assert next(calls) > 60
    assert list(dict.fromkeys(each.id for each in taker.taken)) == expected
    assert len(expected) == 150
    assert "No space left on device" in caplog.text
