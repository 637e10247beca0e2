"""Progress of finite sources."""

from __future__ import annotations

import gzip
import json

import pytest

from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.extent import SizedSource, extent_of
from rsp_engine.io.sources.memory import MemorySource
from rsp_engine.io.sources.splits import Split
from rsp_engine.monitor.run_monitor import Extent

LINE = json.dumps({"timestamp": 1, "graph": "<http://e/a> <http://e/p> 1 ."}) + "\n"
QUAD = "<http://e/a> <http://e/p> <http://e/o> <http://e/g/{}> .\n"
FILES = {
    "s.jsonl": (LINE * 9_000).encode(),
    "s.jsonl.gz": gzip.compress((LINE * 3).encode()),
    "s.nq": "".join(QUAD.format(1000 + n) for n in range(9_000)).encode(),
    "s.trig": b"".join(b"<http://e/g/%d> { <http://e/a> <http://e/p> 1 }\n" % n for n in range(9)),
}


@pytest.mark.parametrize("name", FILES)
def test_of_a_file_bytes_are_counted_as_they_are_read(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    size, source = len(FILES[name]), open_source(str(path))
    assert isinstance(source, SizedSource)
    assert source.extent() == Extent(0, size)
    reading = iter(source)
    next(reading)
    begun = source.extent()
    assert begun is not None
    assert 0 < begun.done <= size
    assert (begun.done < size) == (size > 1 << 18)  # a block is read at once
    for _ in reading:
        pass
    assert source.extent() == Extent(size, size)
    next(iter(source))
    assert source.extent() == begun  # it is read anew


def test_of_a_folder_files_are_counted(tmp_path):
    for n in range(3):
        (tmp_path / f"data_{n}.ttl").write_text("<http://e/a> <http://e/p> 1 .")
    source = open_source(str(tmp_path))
    assert isinstance(source, SizedSource)
    reading = iter(source)
    next(reading)
    next(reading)
    assert source.extent() == Extent(1, 3, "files")
    assert len(list(reading)) == 1
    assert source.extent() == Extent(3, 3, "files")


def test_what_is_read_elsewhere_has_come_to_the_place_that_was_read_last(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(LINE * 10)
    source, size = open_source(str(path)), len(LINE) * 10
    assert extent_of([source], {}) == Extent(0, size)
    assert extent_of([source, source], {1: Split(0, 70)}) == Extent(70, 2 * size)
    assert extent_of([source], {0: Split(70, None)}) == Extent(size, size)


def test_files_and_folders_together_are_counted_in_thousandths(tmp_path):
    (tmp_path / "s.jsonl").write_text(LINE)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "data_1.ttl").write_text("")
    sources = [open_source(str(tmp_path / "s.jsonl")), open_source(str(folder))]
    assert extent_of(sources, {1: Split(0, None)}) == Extent(1000, 2000, "thousandths")


def test_where_one_end_is_not_known_that_of_all_is_not(tmp_path):
    (tmp_path / "s.jsonl").write_text(LINE)
    source = open_source(str(tmp_path / "s.jsonl"))
    assert extent_of([source, MemorySource([])], {}) is None
    assert extent_of([], {}) is None
