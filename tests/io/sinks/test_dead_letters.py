"""Dead letters."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks import DeadLetterFile
from rsp_engine.io.sinks.dead_letters import dead_letter_json
from rsp_engine.model.streams import DeadLetter


@given(st.text(), st.integers(1), st.binary() | st.text().map(str.encode), st.text())
def test_a_dead_letter_is_read_back_to_the_byte(source, position, raw, reason):
    line = dead_letter_json(DeadLetter(source, position, raw, reason))
    assert line.endswith("\n")
    assert line.count("\n") == 1
    read = json.loads(line)
    assert (read["source"], read["position"], read["reason"]) == (source, position, reason)
    assert list(read)[:3] == ["source", "position", "reason"]
    text = read.get("raw")
    assert (base64.b64decode(read["raw_base64"]) if text is None else text.encode()) == raw


def test_letters_stand_in_the_file_as_soon_as_they_are_written(tmp_path):
    path = tmp_path / "dead.jsonl"
    path.write_text("of an earlier run")
    letters = DeadLetterFile(str(path))
    assert path.read_text() == ""
    letters.write(DeadLetter("s", 1, b"a", "late"))
    letters.write(DeadLetter("s", 2, b"\xff", "late"))
    assert [list(json.loads(line))[-1] for line in path.read_text().splitlines()] == [
        "raw",
        "raw_base64",
    ]
    letters.close()
    letters.close()


def test_a_source_whose_name_is_not_text_is_read_back(tmp_path):
    path = tmp_path / "dead.jsonl"
    letters = DeadLetterFile(str(path))
    letters.write(DeadLetter("in\udcff.jsonl", 1, b"a", "late"))
    letters.close()
    assert json.loads(path.read_bytes())["source"] == "in\udcff.jsonl"


@pytest.mark.parametrize("path", ["", "-", ".", "no/such/folder/dead.jsonl", "a\0b"])
def test_a_bad_path_is_refused(path):
    with pytest.raises(SinkError):
        DeadLetterFile(path)


def test_a_full_disk_is_reported():
    letters = DeadLetterFile("/dev/full")
    with pytest.raises(SinkError, match="/dev/full cannot be written: No space left on device"):
        letters.write(DeadLetter("s", 1, b"a", "late"))
    letters.close()
