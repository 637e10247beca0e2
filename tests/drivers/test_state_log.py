"""The log of states: what changed is written, and read back; what is damaged is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.drivers.checkpoint import state_log
from rsp_engine.drivers.checkpoint.delta import patched_text, text_delta
from rsp_engine.drivers.checkpoint.record_log import RecordLog
from rsp_engine.drivers.checkpoint.state_log import StateLog
from rsp_engine.errors import StateError
from tests.thoroughness import examples

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.binary(max_size=200).map(lambda data: data.hex()),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(st.text(max_size=2), parts),
    max_leaves=12,
)
states = st.dictionaries(st.sampled_from("abc"), values, min_size=1)


@examples(100)
@given(st.lists(states, min_size=1, max_size=8), st.sampled_from((0, 500, 1 << 16)))
def test_the_last_of_many_states_is_read_back(tmp_path_factory, found, least):
    folder = tmp_path_factory.mktemp("log")
    log = StateLog(folder)
    log.begin()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_log, "_LEAST", least)
        for batch, state in enumerate(found):
            log.commit(batch, state)
            if batch % 3 == 2:
                log = StateLog(folder)
                log.read()
    saved = StateLog(folder).read()
    assert saved.batch == len(found) - 1
    assert written(saved.state) == written(found[-1])


def written(state: Any) -> str:
    """Return a state as text: 1, 1.0 and true are not the same."""
    return json.dumps(state, sort_keys=True)


@examples(200)
@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 90), st.text("ab,1", max_size=90))))
def test_a_text_is_made_of_the_one_before(edits):
    old = ",".join(map(str, range(700))).encode()
    new = old
    for start, size, text in edits:
        new = new[:start] + text.encode() + new[start + size :]
    assert patched_text(old, text_delta(old, new)) == new
    assert patched_text(new, text_delta(new, old)) == old


def test_a_commit_is_as_large_as_what_changed_whatever_the_state_is(tmp_path):
    sizes = {}
    for count in (1_000, 100_000):
        log = StateLog(tmp_path / str(count))
        (tmp_path / str(count)).mkdir()
        log.begin()
        rows: list[list[Any]] = [[n, f"<http://example.org/{n}>", 1.5 * n] for n in range(count)]
        log.commit(0, {"rows": rows, "times": [1_700_000_000_000] * count})
        before = size_of(tmp_path / str(count))
        for place in range(0, count, count // 50):
            rows[place][2] += 1
        rows.insert(count // 3, [-1, "new", 0.0])
        del rows[count // 2]
        log.commit(1, {"rows": rows, "times": [1_700_000_000_000] * count})
        sizes[count] = size_of(tmp_path / str(count)) - before
    assert sizes[100_000] < 1.5 * sizes[1_000]


def test_what_is_the_same_tuple_as_before_is_not_looked_at(tmp_path, monkeypatch):
    log = StateLog(tmp_path)
    log.begin()
    kept, changed = tuple(range(9)), [1]
    log.commit(0, {"kept": kept, "changed": changed})
    changed.append(2)
    looked: list[object] = []
    text = state_log._text

    def looking(value: object) -> bytes:
        looked.append(value)
        return text(value)

    monkeypatch.setattr(state_log, "_text", looking)
    log.commit(1, {"kept": kept, "changed": changed})
    assert kept not in looked
    assert StateLog(tmp_path).read().state == {"kept": list(kept), "changed": [1, 2]}


def test_the_log_begins_anew_where_it_has_outgrown_the_state(tmp_path):
    log = StateLog(tmp_path)
    log.begin()
    most = 0
    for batch in range(3_000):
        log.commit(batch, {"much": [batch] * 20, "batch": batch})
        [path] = tmp_path.iterdir()
        most = max(most, path.stat().st_size)
    assert int(path.stem) > 500
    assert most < 2 * 65_536
    assert StateLog(tmp_path).read().state == {"much": [2_999] * 20, "batch": 2_999}


def size_of(folder: Any) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def filled(folder: Any) -> Any:
    """Return the path of a log with three commits and two notes."""
    log = StateLog(folder)
    log.begin()
    for batch in range(3):
        log.commit(batch, {"batch": batch, "much": "x" * batch})
        log.note({"after": batch})
    [path] = folder.iterdir()
    return path


@pytest.mark.parametrize("torn", [b"", b"1234", b"\0" * 100, b"00000000 {}\n"])
def test_a_torn_record_at_the_end_is_left_out_and_written_over(tmp_path, torn):
    path = filled(tmp_path)
    with path.open("ab") as stream:
        stream.write(torn)
    log = StateLog(tmp_path)
    assert log.read() == (2, {"batch": 2, "much": "xx"}, ({"after": 2},))
    log.commit(3, {"batch": 3})
    assert StateLog(tmp_path).read() == (3, {"batch": 3}, ())


def test_a_record_without_its_end_is_torn(tmp_path):
    path = filled(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    assert StateLog(tmp_path).read().notes == ()


def test_every_byte_that_is_damaged_before_the_last_record_is_refused(tmp_path):
    path = filled(tmp_path)
    data = path.read_bytes()
    last = data[:-1].rindex(b"\n") + 1
    for place in range(last - 1):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(StateError, match="damaged"):
            StateLog(tmp_path).read()


def test_a_record_that_is_missing_before_another_is_refused(tmp_path):
    path = filled(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for gone in range(len(lines) - 2):
        path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
        with pytest.raises(StateError, match="damaged"):
            StateLog(tmp_path).read()


@pytest.mark.parametrize("text", [b"", b"{}", b'{"batch":-1,"leaves":2}', b"[]"])
def test_a_log_without_its_start_is_refused(tmp_path, text):
    path = filled(tmp_path)
    RecordLog.created(path, [text] if text else [])
    with pytest.raises(StateError, match="damaged"):
        StateLog(tmp_path).read()


def test_a_record_that_cannot_be_written_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    log = RecordLog.created(tmp_path / "a.log", [b"1"])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            log.append(b"2")
    assert RecordLog.opened(tmp_path / "a.log")[1] == [b"1"]
    log.append(b"3")
    assert RecordLog.opened(tmp_path / "a.log")[1] == [b"1", b"3"]
