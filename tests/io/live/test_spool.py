"""The spool: complete messages are durable, incomplete ones are dropped, and disk is bounded."""

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
from rsp_engine.io.sources.live.deduplicator import Deduplicator
from rsp_engine.io.sources.live.receiver import Inbox, InboxClosed
from rsp_engine.io.sources.live.records import Message, SpoolRecord, record_bytes, records_in
from rsp_engine.io.sources.live.spool import Spool, read_split
from rsp_engine.io.sources.splits import Split
from tests.thoroughness import examples

if TYPE_CHECKING:
    from pathlib import Path

messages = st.builds(
    Message,
    st.binary(max_size=40),
    st.text(max_size=5),
    st.text(max_size=5),
    st.just(True),
    st.just(0),
    st.none(),  # only messages of Kafka, which are not spooled, have a key and headers
    st.just(()),
)


def opened(folder: Path, **more: int) -> Spool:
    return Spool(folder, room=1 << 30, **more)  # type: ignore[arg-type]


def filled(folder: Path, count: int, **more: int) -> Spool:
    spool = opened(folder, **more)
    for number in range(1, count + 1):
        spool.append([SpoolRecord(number, 5, Message(f"payload {number}".encode()))])
    return spool


def numbers(spool: Spool, size: int, since: Split | None = None) -> list[int]:
    places = spool.cut(size, since)
    return [record.number for place in places for record in read_split(spool.folder, place)]


@examples(50)
@given(st.lists(messages, max_size=8), st.integers(0, 400))
def test_records_are_read_back_up_to_the_first_that_is_not_whole(found, cut):
    records = [SpoolRecord(number, 7, message) for number, message in enumerate(found, start=1)]
    data = b"".join(map(record_bytes, records))
    assert [record for _, record in records_in(data)] == records
    part = [record for _, record in records_in(data[:cut])]
    assert part == records[: len(part)]
    assert sum(len(record_bytes(record)) for record in part) <= cut


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
@pytest.mark.parametrize("file_bytes", [1, 200, 1 << 20])
def test_places_hold_all_messages_once_in_order(tmp_path, size, file_bytes):
    spool = filled(tmp_path, 30, file_bytes=file_bytes)
    assert numbers(spool, size) == list(range(1, 31))
    [first, *_] = spool.cut(100, None)
    taken = [record.number for record in read_split(tmp_path, first)]
    assert numbers(spool, size, first) == list(range(len(taken) + 1, 31))


@pytest.mark.parametrize("cut", range(1, 48, 5))
def test_what_was_not_finished_is_forgotten_and_the_rest_goes_on(tmp_path, cut):
    """A process that is killed in the middle of a write leaves a part of a record."""
    spool = filled(tmp_path, 5)
    spool.close()
    [file] = tmp_path.glob("*.spool")
    os.truncate(
        file, file.stat().st_size - cut % len(record_bytes(SpoolRecord(5, 5, Message(b"x" * 9))))
    )
    again = opened(tmp_path)
    again.append([SpoolRecord(again.next_number, 9, Message(b"after"))])
    found = [(record.number, record.message.payload) for record in again]
    assert [number for number, _ in found] == [1, 2, 3, 4, 5]
    assert found[-1] == (5, b"after")


HEAD, BODY = 8, 22
"""The sizes of the two fixed parts of a record."""


def damaged(path: Path, at: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize("at", [*range(HEAD + BODY), HEAD + BODY + 3])
def test_a_flipped_bit_in_the_last_file_is_refused_where_messages_follow_it(tmp_path, at, bit):
    """In the size, the checksum, the number, the arrival, the sizes of texts, or the payload."""
    filled(tmp_path, 100).close()
    [file] = tmp_path.glob("*.spool")
    start = 49 * len(record_bytes(SpoolRecord(49, 5, Message(b"payload 49"))))
    start -= 9  # the first nine numbers have one digit
    before = file.read_bytes()
    damaged(file, start + at, bit)
    with pytest.raises(SourceError) as refused:
        opened(tmp_path)
    assert str(file) in refused.value.message
    assert f"the message at byte {start} is not whole, and there are others" in str(refused.value)
    assert f"truncate -s {start} {file}" in (refused.value.hint or "")
    assert len(file.read_bytes()) == len(before), "nothing was cut off"


@pytest.mark.parametrize("cut", [1, 8, 30, 39])
def test_bytes_that_are_missing_in_the_middle_are_refused(tmp_path, cut):
    filled(tmp_path, 9).close()
    [file] = tmp_path.glob("*.spool")
    data = file.read_bytes()
    file.write_bytes(data[: 39 * 4 + 3] + data[39 * 4 + 3 + cut :])
    with pytest.raises(SourceError, match="is damaged"):
        opened(tmp_path)
    assert len(file.read_bytes()) == len(data) - cut


def test_a_whole_message_that_is_missing_in_the_middle_is_refused(tmp_path):
    filled(tmp_path, 9).close()
    [file] = tmp_path.glob("*.spool")
    data = file.read_bytes()
    file.write_bytes(data[: 39 * 4] + data[39 * 5 :])
    with pytest.raises(SourceError, match="at byte 156: message 6 follows message 4"):
        opened(tmp_path)


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("at", [0, 3, 5, 10, 35])
def test_a_flipped_bit_in_any_file_but_the_last_is_refused(tmp_path, number, at):
    filled(tmp_path, 12, file_bytes=70).close()
    files = sorted(tmp_path.glob("*.spool"))
    assert len(files) == 6
    damaged(files[number], at)
    with pytest.raises(SourceError, match=f"{files[number]} is damaged"):
        opened(tmp_path)


def test_a_missing_file_is_refused(tmp_path):
    filled(tmp_path, 12, file_bytes=70).close()
    sorted(tmp_path.glob("*.spool"))[2].unlink()
    with pytest.raises(SourceError, match="is damaged"):
        opened(tmp_path)


def test_a_tail_of_zeros_is_truncated_and_reported(tmp_path, caplog):
    """After a power failure: the file was extended, but its content not written."""
    filled(tmp_path, 3).close()
    [file] = tmp_path.glob("*.spool")
    file.write_bytes(file.read_bytes() + bytes(5_000))
    assert opened(tmp_path).next_number == 4
    assert "its last 5000 bytes are incomplete, and are cut off" in caplog.text


@examples(30)
@given(st.lists(messages, min_size=2, max_size=6), st.data())
def test_no_flipped_bit_loses_a_message_that_another_follows(tmp_path_factory, found, data):
    folder = tmp_path_factory.mktemp("spool")
    spool = opened(folder, file_bytes=data.draw(st.sampled_from([1, 100, 1 << 20])))
    records = [SpoolRecord(number, 7, message) for number, message in enumerate(found, start=1)]
    for record in records:
        spool.append([record])
    spool.close()
    files = sorted(folder.glob("*.spool"))
    file = data.draw(st.sampled_from(files))
    last = len(record_bytes(records[-1])) if file == files[-1] else 0
    size = file.stat().st_size - last
    if size > 0:
        damaged(file, data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, 7)))
        with pytest.raises(SourceError):
            opened(folder)


def test_what_is_not_needed_is_removed_but_for_how_it_is_known_again(tmp_path):
    spool = Spool(tmp_path, room=1 << 30, file_bytes=1, deduplicator=Deduplicator("id"))
    inbox = Inbox("source", spool, Deduplicator("id"))
    for number in range(1, 21):
        inbox.put([Message(b"payload", id=f"m{number}")])
    spool.release(spool.end)
    assert [record.number for record in spool] == [20]
    with pytest.raises(SourceError, match="are gone"):
        list(read_split(tmp_path, Split(0, 10)))
    spool.close()
    again = Spool(tmp_path, room=1 << 30, file_bytes=1, deduplicator=Deduplicator("id"))
    assert again.next_number == 21
    assert again.end == spool.end, "places stay what they are"
    inbox = Inbox("source", again, Deduplicator("id"))
    assert inbox.last_id == "m20"
    inbox.put([Message(b"payload", id=f"m{number}") for number in (1, 19, 20, 21)])
    assert inbox.repeated == 3
    assert [record.message.id for record in again] == ["m20", "m21"]


def test_what_cannot_be_sent_again_is_forgotten(tmp_path):
    spool = Spool(tmp_path, room=1 << 30, file_bytes=1, deduplicator=Deduplicator("id", most=5))
    for number in range(1, 21):
        name = f"m{number}" if number < 10 else ""
        spool.append([SpoolRecord(number, 100 + number, Message(b"payload", id=name))])
        spool.release(spool.end)
    assert len(list(tmp_path.glob("*.seen"))) <= 6
    spool.close()
    again = Spool(tmp_path, room=1 << 30, file_bytes=1)
    assert (again.past.number, again.past.arrival, again.past.id) == (19, 119, "m9")


def test_an_empty_last_file_does_not_forget_where_it_was(tmp_path):
    """A run is killed after a file was created and before anything was written to it."""
    spool = filled(tmp_path, 5, file_bytes=1)
    spool.release(spool.end)
    spool.close()
    (tmp_path / f"{spool.end:020}.spool").touch()
    again = opened(tmp_path)
    again.release(again.end)
    again.close()
    assert opened(tmp_path).next_number == 6


def test_damage_in_what_is_remembered_is_refused(tmp_path):
    spool = Spool(tmp_path, room=1 << 30, file_bytes=1, deduplicator=Deduplicator("content"))
    for number in (1, 2, 3):
        spool.append([SpoolRecord(number, 5, Message(b"payload"))])
    spool.release(spool.end)
    spool.close()
    first, *_ = sorted(tmp_path.glob("*.seen"))
    damaged(first, -1)
    with pytest.raises(SourceError, match=f"{first} is damaged: its checksum"):
        opened(tmp_path)


@pytest.mark.parametrize("room", [1 << 20, 100_000])
def test_the_disk_holds_the_room_and_a_constant_however_much_is_released(tmp_path, room):
    """Ten times the room passes through, in messages of six kilobytes with distinct ids."""
    repeats = Deduplicator("id")
    spool = Spool(tmp_path, room=room, deduplicator=repeats)
    inbox = Inbox("source", spool, repeats)
    most, sent = 0, 0
    while sent < 10 * room:
        while spool.wait_for_room(30_000, 0):
            inbox.put([Message(bytes(6_000), id=f"{sent} {n}") for n in range(4)])
            sent += 24_000
            most = max(most, sum(path.stat().st_size for path in tmp_path.iterdir()))
        spool.release(spool.end)
    assert most <= room + max(room // 4, 64 << 10) + 200_000
    assert len(list(tmp_path.glob("*.spool"))) == 1


def test_a_full_spool_makes_its_writer_wait(tmp_path):
    spool = Spool(tmp_path, room=60)
    inbox = Inbox("source", spool, Deduplicator("none"))
    inbox.put([Message(b"x" * 100)])  # larger than the room: alone it fits
    waiting = threading.Thread(target=inbox.put, args=([Message(b"y")],))
    waiting.start()
    time.sleep(0.3)
    assert spool.next_number == 2, "the second waits"
    spool.release(spool.end)
    waiting.join(timeout=10)
    assert [record.message.payload[:1] for record in spool] == [b"x", b"y"]


def test_a_full_disk_is_reported_once_and_nothing_is_lost(tmp_path, caplog):
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
    inbox = Inbox("source", spool, Deduplicator("none"))
    inbox.put([Message(b"first"), Message(b"second")])
    assert [record.message.payload for record in spool] == [b"first", b"second"]
    log_lines = [record.getMessage() for record in caplog.records]
    assert len(log_lines) == 2
    assert "No space left on device; they wait" in log_lines[0]
    assert log_lines[1] == "source: connected again"
    spool.close()
    assert len(list(opened(tmp_path))) == 2


def test_who_waits_for_room_is_let_go_when_the_run_ends(tmp_path):
    inbox = Inbox("source", Spool(tmp_path, room=1), Deduplicator("none"))
    inbox.put([Message(b"x")])
    threading.Timer(0.3, inbox.close).start()
    with pytest.raises(InboxClosed):
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
        Inbox("source", spool, Deduplicator(by)).put(group)
        found = [record.message.payload for record in spool]
        spool.close()
    assert found == kept


def test_the_number_of_a_packet_counts_only_if_it_is_sent_again():
    seen = Deduplicator("id")
    seen.add(Message(b"x", "t", "7 digest", may_repeat=False))
    assert Message(b"x", "t", "7 digest", may_repeat=False) not in seen
    assert Message(b"x", "t", "7 digest", may_repeat=True) in seen
