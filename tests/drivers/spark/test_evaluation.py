"""Windows that executors evaluate: the bytes are those of the local driver, whoever evaluates."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import cloudpickle

from rsp_engine.drivers.spark.driver import SparkOptions
from rsp_engine.engine import Engine
from rsp_engine.errors import DriverError, StateError
from rsp_engine.io.sinks.jsonl import JSONL
from rsp_engine.io.sources import open_source
from tests.data import PROJECT
from tests.drivers.cut import texts
from tests.drivers.spark import dying, killing
from tests.drivers.spark.recovering import EVALUATED, write_stream
from tests.drivers.spark.recovering import evaluated as evaluated_run
from tests.drivers.spark.test_driver import EX, HEAD, WINDOW, engine, lines
from tests.evaluators.test_semantics import CASES
from tests.evaluators.test_semantics import check as check_case
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rsp_engine.drivers.panes.evaluation import Where

pytestmark = pytest.mark.usefixtures("spark")

SHARED = ("groups", "all rows", "general")
"""Kinds of queries whose windows executors evaluate."""


@pytest.fixture
def evaluated(monkeypatch) -> Callable[..., None]:
    """Return a function that decides who evaluates windows, and with how many buckets."""

    def choose(where: Where, buckets: int = 3) -> None:
        options = partial(SparkOptions, where=where, buckets=buckets, small_bytes=0)
        monkeypatch.setattr("rsp_engine.drivers.spark.driver.SparkOptions", options)

    return choose


@pytest.mark.parametrize("path", CASES if TIMES > 1 else CASES[::24], ids=lambda path: path.stem)
def test_a_case_of_the_semantics_holds_by_executors(path, evaluated, tmp_path, monkeypatch):
    monkeypatch.setenv("RSP_RUNNER", "spark")
    evaluated("executors")
    check_case(path, tmp_path)


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("buckets", (1, 3, 16) if TIMES > 1 else (3,))
def test_executors_give_the_bytes_of_the_local_driver(kind, buckets, evaluated, tmp_path):
    path = tmp_path / "stream.nq"
    path.write_text("".join(lines(1, late=True)), encoding="utf-8")
    local = engine(kind, str(path), "local")
    expected = texts(local)
    for where in ("executors", "driver", "auto"):
        evaluated(where, buckets)
        spark = engine(kind, str(path), "spark")
        assert texts(spark) == expected
        assert spark.counts == local.counts


@pytest.mark.skipif(TIMES == 1, reason="RSP_THOROUGH=1 asks for it: a cluster of five processes")
@pytest.mark.parametrize("kind", EVALUATED)
def test_a_cluster_of_four_evaluates_the_windows(kind, tmp_path):
    """Its executors have working folders of their own."""
    write_stream(tmp_path / "stream.nq")
    expected = texts(evaluated_run(tmp_path, None, kind))
    command = [sys.executable, "-m", "tests.drivers.spark.recovering", str(tmp_path), "never", "0"]
    done = subprocess.run(  # noqa: S603 - our own
        [*command, kind, "local-cluster[4,1,1024]"], cwd=PROJECT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "answers.jsonl").read_text(encoding="utf-8") == "".join(expected)


@pytest.fixture
def by_value() -> Iterator[None]:
    """Send what these modules of tests define as it is: executors do not have them."""
    for module in (dying, killing):
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in (dying, killing):
        cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    path = tmp_path / "stream.nq"
    path.write_text("".join(lines(5, late=False)), encoding="utf-8")
    return path


CALLED = f"""SELECT ?s (MAX(:same(?v)) AS ?m) {WINDOW}
    WHERE {{ WINDOW :w {{ ?s :p ?v . ?s :q ?w }} }} GROUP BY ?s"""


def calling(stream: Path, runner: Any, call: Callable[[int], int]) -> Engine:
    made = Engine(runner=runner, split_bytes=20_000)
    made.function(f"{EX}same", call)
    made.register(HEAD + CALLED)
    made.bind(f"{EX}s", str(stream))
    return made


@pytest.mark.usefixtures("by_value")
def test_an_executor_may_be_killed_while_it_evaluates_windows(evaluated, stream, tmp_path):
    evaluated("executors")
    expected = texts(calling(stream, "local", lambda value: value))
    assert texts(calling(stream, "spark", killing.killing(tmp_path))) == expected
    assert (tmp_path / "killed").exists()


@pytest.mark.usefixtures("by_value")
def test_an_executor_may_be_killed_while_it_writes_pane_files(evaluated, stream, tmp_path):
    """It has written the panes of the splits before; another attempt writes them again."""
    evaluated("executors")
    expected = texts(engine("groups", str(stream), "local", split_bytes=10_000))
    made = engine("groups", str(stream), "spark", split_bytes=10_000)
    opened: Any = open_source(str(stream))
    made._sources = {f"{EX}s": [dying.Dying(opened, tmp_path, 2)]}  # type: ignore[list-item]
    assert texts(made) == expected
    assert len(list(tmp_path.glob("death-*"))) == 2


def test_a_function_that_cannot_be_sent_is_called_by_the_driver(evaluated, stream):
    evaluated("executors")
    lock = Lock()

    def locked(value: int) -> int:
        with lock:
            return value

    expected = texts(calling(stream, "local", locked))
    assert texts(calling(stream, "spark", locked)) == expected


def test_no_pane_file_is_left_at_the_end(evaluated, stream, tmp_path):
    evaluated("executors")
    folder = tmp_path / "checkpoint"
    made = engine("groups", str(stream), "spark", 3_000, folder)
    seen = 0
    for _ in made.run():
        seen = max(seen, len(list((folder / "panes").iterdir())))
    assert seen > 0
    assert not list((folder / "panes").iterdir())


def test_a_run_whose_panes_cannot_be_stored_says_so(evaluated, stream, tmp_path):
    evaluated("executors")
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "panes").write_text("in the way")
    with pytest.raises(DriverError, match=r"pane files cannot be kept in .*: File exists"):
        texts(engine("groups", str(stream), "spark", 3_000, folder))


def interrupted(evaluated: Callable[..., None], stream: Path, folder: Path) -> list[str]:
    """Stop a run after some windows, and return its answers."""
    evaluated("executors")
    writer, found = JSONL.writer(), []
    made = engine("groups", str(stream), "spark", 3_000, folder)
    for answer in made.run():
        found.append(str(writer(answer)))
        made.stop()
    assert list((folder / "panes").iterdir())
    return found


def test_a_run_that_was_stopped_goes_on_from_its_pane_files(evaluated, stream, tmp_path):
    expected = texts(engine("groups", str(stream), "local"))
    folder = tmp_path / "checkpoint"
    found = interrupted(evaluated, stream, folder)
    assert len(found) < len(expected)
    stray = folder / "panes" / "0123.panes"
    stray.write_bytes(b"of an attempt that failed")
    evaluated("driver", 5)  # the buckets are those of the checkpoint
    assert found + texts(engine("groups", str(stream), "spark", 3_000, folder)) == expected
    assert not stray.exists()


def test_a_pane_file_that_is_gone_cut_or_damaged_is_refused(evaluated, stream, tmp_path):
    folder = tmp_path / "checkpoint"
    interrupted(evaluated, stream, folder)
    evaluated("executors")
    files = sorted((folder / "panes").iterdir())
    whole = {path: path.read_bytes() for path in files}

    def resumed() -> list[str]:
        return texts(engine("groups", str(stream), "spark", 3_000, folder))

    for path in files:
        path.write_bytes(whole[path][:-20])
    with pytest.raises(StateError, match=r"needs the pane file .*: it has \d+ bytes"):
        resumed()
    for path in files:
        path.write_bytes(whole[path].replace(b"example.org", b"example.com"))
    with pytest.raises(DriverError, match=r"pane file .* cannot be read: it is cut off or damaged"):
        resumed()
    for path in files:
        path.unlink()
    with pytest.raises(StateError, match=r"needs the pane file .*: No such file"):
        resumed()
    for path in files:
        path.write_bytes(whole[path])
    assert resumed(), "nothing was lost"
