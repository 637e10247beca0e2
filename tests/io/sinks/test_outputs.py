"""Outputs: files, folders, standard output and callbacks; and what is refused on opening."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks import DEFAULT_FORMAT, FORMATS, Callback, open_sink
from rsp_engine.model.answers import Boolean, Graph, Solutions
from tests.io.sinks.samples import BOB, EX, GRAPH, RANKED, answer, one, written, written_bytes

CONTENTS: dict[str, Solutions | Graph | Boolean] = {
    "SELECT": RANKED,
    "CONSTRUCT": GRAPH,
    "ASK": Boolean(True),
}
FITTING = [(name, form) for name, made in FORMATS.items() for form in made.forms]
UNFIT = [(n, form) for n, made in FORMATS.items() for form in CONTENTS if form not in made.forms]


def test_the_formats_have_names_and_a_line_of_help():
    known = ["jsonl", "csv", "tsv", "sparql-json", "sparql-xml", "nquads", "jelly"]
    assert list(FORMATS) == known
    assert DEFAULT_FORMAT == "jsonl"
    for name, made in FORMATS.items():
        assert made.name == name
        assert made.help
        assert "\n" not in made.help


@pytest.mark.parametrize(("name", "form"), FITTING)
def test_the_same_answers_give_the_same_bytes_flushed_after_each(name, form, tmp_path):
    path = tmp_path / "answers"
    path.write_text("of an earlier run")
    answers = [answer(CONTENTS[form], close) for close in (5000, 6000, 7000)]
    sink = open_sink(name, str(path), form)
    assert path.read_bytes() == b""
    for count in (1, 2, 3):
        sink.write(answers[count - 1])
        assert path.read_bytes() == written_bytes(name, *answers[:count])
    sink.close()
    sink.close()
    assert path.read_bytes() == written_bytes(name, *answers)


@pytest.mark.parametrize(("name", "form"), UNFIT)
def test_a_form_that_a_format_cannot_hold_is_refused_before_the_output_is_touched(
    name, form, tmp_path
):
    path = tmp_path / "answers"
    with pytest.raises(SinkError, match=f"^{name} cannot hold the .* {form} answers") as refusal:
        open_sink(name, str(path), form)
    advised = str(refusal.value.hint).removeprefix("use ").replace(" or ", ", ").split(", ")
    assert all(form in FORMATS[other].forms for other in advised)
    assert not path.exists()


def test_an_unknown_format_is_refused():
    with pytest.raises(SinkError, match="there is no format `xml`") as refusal:
        open_sink("xml", None, "SELECT")
    assert refusal.value.hint == "the formats are " + ", ".join(FORMATS)


def test_a_function_is_called_with_each_answer():
    answers: list[object] = []
    sink = Callback(answers.append)
    sink.write(answer(RANKED))
    sink.close()
    assert answers == [answer(RANKED)]


@pytest.mark.parametrize(
    ("output", "reason", "hint"),
    [
        ("", "the output has an empty name", "name a file"),
        ("missing/answers", "cannot be written: No such file", "make the folder missing first"),
        ("file/answers", "cannot be written: Not a directory", "is a file"),
        ("folder", "folder is a folder, not a file", "folder/answers"),
        ("new/", "new/ is a folder, not a file", "new/answers"),
        ("a\0b", "cannot be written: embedded null byte", None),
        ("a" * 300, "cannot be written: File name too long", None),
    ],
)
def test_a_bad_path_is_refused(output, reason, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("folder").mkdir()
    with pytest.raises(SinkError, match=reason) as refusal:
        open_sink("jsonl", output, "SELECT")
    assert refusal.value.hint is None if hint is None else hint in str(refusal.value.hint)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("missing/new/", "cannot be written: No such file"),
        ("file/", "cannot be written: File exists"),
        ("file/new/", "cannot be written: Not a directory"),
        ("a\0b/", "cannot be written: embedded null byte"),
    ],
)
def test_a_bad_folder_is_refused(output, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(SinkError, match=reason):
        open_sink("sparql-json", output, "SELECT")


def test_what_may_not_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(*_arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(SinkError, match="cannot be written: it is not allowed"):
        open_sink("sparql-xml", str(tmp_path), "ASK")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SinkError, match="cannot be written: Permission denied") as refusal:
        open_sink("jsonl", str(tmp_path / "answers"), "ASK")
    assert refusal.value.hint == "choose a path that you may write to"


def test_a_full_disk_is_reported_and_the_sink_can_still_be_closed():
    sink = open_sink("jsonl", "/dev/full", "SELECT")
    with pytest.raises(SinkError, match=r"^/dev/full cannot be written: No space left on device$"):
        sink.write(answer(RANKED))
    sink.close()


@pytest.mark.parametrize(("name", "suffix"), [("sparql-json", "srj"), ("sparql-xml", "srx")])
def test_a_folder_gets_a_file_for_each_window(name, suffix, tmp_path):
    folder = tmp_path / "new"
    sink = open_sink(name, f"{folder}/", "SELECT")
    answers = {
        f"5000.{suffix}": answer(RANKED, 5000, ""),
        f"5000-2.{suffix}": answer(Solutions(("x",), ()), 5000, ""),
        f"6000.{suffix}": answer(RANKED, 6000, ""),
        f"top%203-6000.{suffix}": answer(RANKED, 6000, "top 3"),
        f"http%3A%2F%2Fexample.org%2Fq-7000.{suffix}": answer(RANKED, 7000, f"{EX}q"),
        f"..%2F..-7000.{suffix}": answer(RANKED, 7000, "../.."),
    }
    for one_answer in answers.values():
        sink.write(one_answer)
    sink.close()
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        file: written(name, one_answer) for file, one_answer in answers.items()
    }


def test_a_folder_that_exists_keeps_what_it_holds(tmp_path):
    (tmp_path / "notes").write_text("mine")
    sink = open_sink("sparql-json", str(tmp_path), "ASK")
    sink.write(answer(Boolean(True), query="q" * 1000))
    sink.write(answer(Boolean(None), 6000))
    sink.write(answer(Boolean(True), query="q" * 1001))
    sink.close()
    assert (tmp_path / "notes").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_folder_that_goes_away_is_reported(tmp_path):
    folder = tmp_path / "new"
    sink = open_sink("sparql-json", f"{folder}/", "SELECT")
    folder.rmdir()
    with pytest.raises(SinkError, match=r"5000\.srj cannot be written"):
        sink.write(answer(RANKED))


@pytest.mark.parametrize("output", [None, "-"])
def test_standard_output_gets_the_bytes_and_stays_open(output, capfdbinary):
    sink = open_sink("csv", output, "SELECT")
    sink.write(one(BOB))
    sink.close()
    sink.close()
    assert not sys.stdout.closed
    assert capfdbinary.readouterr() == (written("csv", one(BOB)).encode(), b"")


def test_a_standard_output_without_bytes_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with pytest.raises(SinkError, match="standard output does not accept bytes here"):
        open_sink("jsonl", None, "SELECT")


PROGRAM = """
import sys
from rsp_engine.errors import SinkError
from rsp_engine.model.answers import Answer, Boolean, Interval
from rsp_engine.io.sinks import open_sink

sink = open_sink("jsonl", None, "ASK")
try:
    while True:
        sink.write(Answer("q", Interval(0, 5), Boolean(True), {}))
except BrokenPipeError:
    sink.close()
    sys.exit(7)
except SinkError as error:
    sink.close()
    sys.exit(error.message)
"""


def test_a_reader_that_goes_away_stops_the_run_without_a_word():
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"query":"q"')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 7


def test_a_full_disk_behind_standard_output_is_reported_once():
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", PROGRAM], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert process.returncode == 1
    assert process.stderr == b"standard output cannot be written: No space left on device\n"
