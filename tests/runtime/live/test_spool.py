"""The spool: what is on disk stays, what is not finished goes, and there is a bound."""

from __future__ import annotations

import errno
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import SourceError
from rsp_engine.runtime.sources.cuts import Place
from rsp_engine.runtime.sources.live.receiving import Closed, Inbox
from rsp_engine.runtime.sources.live.records import Message, Record, records_in, written
from rsp_engine.runtime.sources.live.repeats import Repeats
from rsp_engine.runtime.sources.live.spool import Spool, read_place
from tests.thoroughness import examples

if TYPE_CHECKING:
    from pathlib import Path

messages = st.builds(
    Message, st.binary(max_size=40), st.text(max_size=5), st.text(max_size=5), st.just(True)
)


def opened(folder: Path, **more: int) -> Spool:
    return Spool(folder, room=1 << 30, **more)  # type: ignore[arg-type]


def filled(folder: Path, count: int, **more: int) -> Spool:
    spool = opened(folder, **more)
    for number in range(1, count + 1):
        spool.append([Record(number, 5, Message(f"payload {number}".encode()))])
    return spool


def numbers(spool: Spool, size: int, since: Place | None = None) -> list[int]:
    places = spool.cut(size, since)
    return [record.number for place in places for record in read_place(spool.folder, place)]


@examples(50)
@given(st.lists(messages, max_size=8), st.integers(0, 400))
def test_records_are_read_back_up_to_the_first_that_is_not_whole(found, cut):
    records = [Record(number, 7, message) for number, message in enumerate(found, start=1)]
    data = b"".join(map(written, records))
    assert [record for _, record in records_in(data)] == records
    part = [record for _, record in records_in(data[:cut])]
    assert part == records[: len(part)]
    assert sum(len(written(record)) for record in part) <= cut


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
@pytest.mark.parametrize("file_bytes", [1, 200, 1 << 20])
def test_places_hold_all_messages_once_in_order(tmp_path, size, file_bytes):
    spool = filled(tmp_path, 30, file_bytes=file_bytes)
    assert numbers(spool, size) == list(range(1, 31))
    [first, *_] = spool.cut(100, None)
    taken = [record.number for record in read_place(tmp_path, first)]
    assert numbers(spool, size, first) == list(range(len(taken) + 1, 31))


@pytest.mark.parametrize("cut", range(1, 48, 5))
def test_what_was_not_finished_is_forgotten_and_the_rest_goes_on(tmp_path, cut):
    """A process that is killed in the middle of a write leaves a part of a record."""
    spool = filled(tmp_path, 5)
    spool.close()
    [file] = tmp_path.glob("*.spool")
    os.truncate(file, file.stat().st_size - cut % len(written(Record(5, 5, Message(b"x" * 9)))))
    again = opened(tmp_path)
    again.append([Record(again.next_number, 9, Message(b"after"))])
    found = [(record.number, record.message.payload) for record in again]
    assert [number for number, _ in found] == [1, 2, 3, 4, 5]
    assert found[-1] == (5, b"after")


def test_damage_in_the_middle_is_refused(tmp_path):
    filled(tmp_path, 5, file_bytes=1).close()
    first, *_ = sorted(tmp_path.glob("*.spool"))
    first.write_bytes(first.read_bytes()[:-1] + b"?")
    with pytest.raises(SourceError, match="is damaged"):
        opened(tmp_path)


def test_what_is_not_needed_is_removed_but_for_what_may_be_sent_again(tmp_path):
    spool = filled(tmp_path, 20, file_bytes=1, remembered=5)
    spool.release(spool.end)
    assert [record.number for record in spool] == [16, 17, 18, 19, 20]
    with pytest.raises(SourceError, match="is gone"):
        list(read_place(tmp_path, Place(0, 10)))
    spool.close()
    again = opened(tmp_path, file_bytes=1, remembered=5)
    assert again.next_number == 21
    assert again.end == spool.end, "places stay what they are"


def test_a_full_spool_makes_its_writer_wait(tmp_path):
    spool = Spool(tmp_path, room=60)
    inbox = Inbox("source", spool, Repeats("none"))
    inbox.put([Message(b"x" * 100)])
    waiting = threading.Thread(target=inbox.put, args=([Message(b"y")],))
    waiting.start()
    time.sleep(0.3)
    assert spool.next_number == 2, "the second waits"
    spool.release(spool.end)
    waiting.join(timeout=10)
    assert [record.message.payload[:1] for record in spool] == [b"x", b"y"]


def test_a_full_disk_is_told_once_and_nothing_is_lost(tmp_path, caplog):
    """Half of a record fits, then nothing does, and then there is room again."""
    failures = [12, 0]

    def write(number: int, data: bytes) -> int:
        if not failures:
            return os.write(number, data)
        size = failures.pop(0)
        if size:
            return os.write(number, data[:size])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    spool = Spool(tmp_path, room=1 << 20, write=write)
    inbox = Inbox("source", spool, Repeats("none"))
    inbox.put([Message(b"first"), Message(b"second")])
    assert [record.message.payload for record in spool] == [b"first", b"second"]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "No space left on device; they wait" in said[0]
    assert said[1] == "source: it is back"
    spool.close()
    assert len(list(opened(tmp_path))) == 2


def test_who_waits_for_room_is_let_go_when_the_run_ends(tmp_path):
    inbox = Inbox("source", Spool(tmp_path, room=1), Repeats("none"))
    inbox.put([Message(b"x")])
    threading.Timer(0.3, inbox.close).start()
    with pytest.raises(Closed):
        inbox.put([Message(b"y")])


@pytest.mark.parametrize(
    ("by", "kept"),
    [("id", [b"a", b"c", b"d", b"d"]), ("content", [b"a", b"b", b"c", b"d"]),
     ("none", [b"a", b"b", b"c", b"d", b"d", b"a"])],
)  # fmt: skip
def test_messages_that_come_again_are_left_out_also_after_a_crash(tmp_path, by, kept):
    first = [Message(b"a", "t", "1"), Message(b"b", "t", "1"), Message(b"c", "t", "2")]
    second = [Message(b"d", "t"), Message(b"d", "t"), Message(b"a", "t", "1")]
    for group in (first, second):
        spool = opened(tmp_path)
        Inbox("source", spool, Repeats(by)).put(group)
        found = [record.message.payload for record in spool]
        spool.close()
    assert found == kept


def test_the_number_of_a_packet_counts_only_if_it_is_sent_again():
    seen = Repeats("id")
    seen.add(Message(b"x", "t", "7 digest", may_repeat=False))
    assert Message(b"x", "t", "7 digest", may_repeat=False) not in seen
    assert Message(b"x", "t", "7 digest", may_repeat=True) in seen
