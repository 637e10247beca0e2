"""A folder of files: one graph each, with its time in its name."""

from __future__ import annotations

import gzip

import pytest

from rsp_engine.errors import SourceError
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.files import turtle_files
from rsp_engine.model.streams import DeadLetter
from tests.data import real_data
from tests.io.sources.reading import read, shown, write


def turtle(subject: str) -> str:
    return f"@prefix e: <http://example.org/> .\ne:{subject} e:p 'x' .\n"


def test_files_are_read_in_the_order_of_time_and_then_of_name(tmp_path):
    write(tmp_path / "data_10.ttl", turtle("d"))
    write(tmp_path / "data_9.turtle", turtle("a"))
    write(tmp_path / "b_2_9.nt", '<http://example.org/c> <http://example.org/p> "x" .\n')
    write(tmp_path / "a_9.ttl.gz", gzip.compress(turtle("b").encode()))
    write(tmp_path / ".hidden", "anything")
    elements, letters = read(tmp_path)
    assert shown(elements) == [(9, 'b p "x"'), (9, 'c p "x"'), (9, 'a p "x"'), (10, 'd p "x"')]
    assert letters == []
    assert {element.position for element in elements} == {1}
    assert elements[0].source == str(tmp_path / "a_9.ttl.gz")
    assert elements[0].raw == turtle("b").encode()


def test_the_unit_can_be_seconds(tmp_path):
    write(tmp_path / "data_07.ttl", turtle("a"))
    assert shown(read(f"{tmp_path}?unit=s")[0]) == [(7000, 'a p "x"')]
    assert shown(read(f"{tmp_path}?format=turtle-files")[0]) == [(7, 'a p "x"')]
    assert open_source(str(tmp_path)).blank_node_scope == "element"


def test_a_bad_file_is_set_aside_and_its_neighbours_are_kept(tmp_path):
    write(tmp_path / "1.ttl", turtle("a"))
    write(tmp_path / "2.ttl", "@prefix e: <http://example.org/> .\ne:a e:p")
    write(tmp_path / "3.ttl", turtle("b"))
    write(tmp_path / "4.ttl.gz", gzip.compress(turtle("c").encode())[:-3])
    write(tmp_path / "none.ttl", turtle("d"))
    write(tmp_path / f"{'9' * 30}.ttl", turtle("e"))
    elements, letters = read(tmp_path)
    assert shown(elements) == [(1, 'a p "x"'), (3, 'b p "x"')]
    assert [(letter.source, letter.position, letter.raw) for letter in letters] == [
        (str(tmp_path / f"{'9' * 30}.ttl"), 1, turtle("e").encode()),
        (str(tmp_path / "none.ttl"), 1, turtle("d").encode()),
        (str(tmp_path / "2.ttl"), 1, b"@prefix e: <http://example.org/> .\ne:a e:p"),
        (str(tmp_path / "4.ttl.gz"), 1, turtle("c").encode()),
    ]
    assert [letter.reason for letter in letters] == [
        "the time in the name of the file does not fit into 64 bits of milliseconds",
        "the name of the file holds no number that could be its time",
        "the graph cannot be read: line 2: Unexpected end",
        "the gzip data end too early: the file was cut off",
    ]


def test_a_file_that_is_too_large_or_gone_is_set_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(turtle_files, "LARGEST_FILE", 100)
    write(tmp_path / "1.ttl", turtle("a") * 10)
    gone = write(tmp_path / "none.ttl", turtle("b"))
    source = open_source(str(tmp_path))
    gone.unlink()
    reasons = [letter.reason for letter in source if isinstance(letter, DeadLetter)]
    assert reasons[0].startswith("the name of the file holds no number")
    assert reasons[0].endswith("there is no such file or folder")
    assert reasons[1] == "the file is larger than 100 bytes"


@pytest.mark.parametrize("name", ["README", "1.csv", "1.gz", "2.ttl"])
def test_a_file_that_would_not_be_read_is_refused_by_name(tmp_path, name):
    write(tmp_path / "1.ttl", turtle("a"))
    if name == "2.ttl":
        (tmp_path / name).mkdir()
    else:
        write(tmp_path / name, "")
    with pytest.raises(SourceError, match=f"{name} is not a file of one graph") as refusal:
        open_source(str(tmp_path))
    assert ".ttl, .turtle, .nt" in str(refusal.value)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(SourceError, match="the folder is empty"):
        open_source(str(tmp_path))


@pytest.mark.parametrize("place", ["{}/a.ttl", "-", "http://example.org/folder"])
def test_only_a_folder_is_a_folder(tmp_path, place):
    write(tmp_path / "a.ttl", "")
    with pytest.raises(SourceError, match="it is not a folder"):
        open_source(f"{place.format(tmp_path)}?format=turtle-files")


def test_the_weather_of_csrbench_is_read():
    elements, letters = read(f"{real_data('csrbench') / 'data'}?unit=s")
    assert letters == []
    assert [element.timestamp for element in elements] == [second * 1000 for second in range(34)]
    assert sum(len(element.triples) for element in elements) == 15_188
