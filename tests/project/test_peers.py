"""The comparison with peers: what counts as the same answer, and what a process is said to use."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, cast

import pyoxigraph as ox
import pytest

from benchmarks.peers.answers import agreement
from benchmarks.peers.cases import CASES
from benchmarks.peers.environment import PEERS, UnavailableError, last_message
from benchmarks.peers.oxigraph_reload import rows, windows
from benchmarks.peers.streams import EX, FEW, VALUE, write_stream
from benchmarks.peers.task import Task
from rsp_engine import Engine

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peers.answers import Answers
    from rsp_engine.model.answers import Solutions

OURS: Answers = {
    2000: [("a", "9"), ("b", "7"), ("c", "5")],
    3000: [("a", "9"), ("b", "5"), ("c", "5")],
}


def test_answers_of_the_same_rows_agree():
    assert agreement(OURS, dict(OURS), 3) == "equal"


def test_windows_before_our_first_do_not_count():
    assert agreement(OURS, {1000: [("z", "1")], **OURS}, 3) == "equal"


def test_rows_that_tie_at_the_limit_may_be_others():
    theirs: Answers = {**OURS, 3000: [("a", "9"), ("d", "5"), ("b", "5")]}
    assert agreement(OURS, theirs, 3) == "equal"


def test_below_the_limit_no_row_may_be_another():
    theirs: Answers = {**OURS, 3000: [("a", "9"), ("d", "5"), ("b", "5")]}
    assert agreement(OURS, theirs, 4) == "1 of 2 windows equal"


@pytest.mark.parametrize(
    "theirs",
    [
        pytest.param([("a", "9"), ("d", "7"), ("c", "5")], id="another row above the border"),
        pytest.param([("a", "9"), ("b", "7"), ("c", "4")], id="another score"),
        pytest.param([("a", "9"), ("b", "7")], id="a missing row"),
        pytest.param([], id="a missing window"),
    ],
)
def test_differences_are_counted(theirs):
    assert agreement(OURS, {**OURS, 2000: theirs}, 3) == "1 of 2 windows equal"


def test_without_a_limit_the_order_is_free_and_each_row_counts():
    assert agreement(OURS, {**OURS, 2000: OURS[2000][::-1]}, None) == "equal"
    assert agreement(OURS, {**OURS, 2000: OURS[2000] * 2}, None) == "1 of 2 windows equal"


RUNS = {(run.query, run.stream): run for case in CASES for run in case.runs}
"""One run for each query over each stream."""


@pytest.mark.parametrize(
    "run", RUNS.values(), ids=lambda run: f"{run.stream.name} {run.query.kind}"
)
def test_the_reload_script_agrees_with_the_engine(run, tmp_path):
    query = run.query
    triples = 10_000 if query.kind == "sparql" else 1_000  # so that joins match something
    stream = write_stream(run.stream.reduced(triples / run.stream.triples), tmp_path)
    text, step, limit = query.sparql(), query.step_s, query.limit or 0
    task = Task(query.kind, text, str(stream), "", VALUE, query.range_s, step, limit)
    theirs = {close: list(map(tuple, rows(task, content))) for close, content in windows(task)}
    with Engine(runner="local") as engine:
        engine.register(query.rspql())
        engine.bind(f"{EX}stream", str(stream))
        answers = [(answer, cast("Solutions", answer.content)) for answer in engine.run()]
    ours = {
        answer.window.close: [
            tuple(getattr(row.bindings.get(name), "value", None) for name in query.variables)
            for row in content.rows
        ]
        for answer, content in answers
    }
    assert any(ours.values())
    assert agreement(ours, theirs, query.limit) == "equal"


def test_the_same_stream_as_csv_has_the_same_values(tmp_path):
    path = write_stream(FEW.first(3), tmp_path)
    _, *lines = path.with_suffix(".csv").read_text().splitlines()
    quads = [
        [f"{quad.subject.value}", quad.object.value, quad.graph_name.value.rsplit("/", 1)[1]]
        for quad in ox.parse(path=path, format=ox.RdfFormat.N_QUADS)
    ]
    assert [line.split(",") for line in lines] == quads
    assert len(quads) == 3


def used(program: str, folder: Path) -> str:
    """Measure a Python program; in a process of its own, as all children are waited for."""
    text = f"""import sys; from pathlib import Path
from benchmarks.peers.usage import adopt_orphans, measure
adopt_orphans()
folder = Path({str(folder)!r})
print(measure([sys.executable, "-c", {program!r}], folder, folder / "log").cpu_s)"""
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout + done.stderr


BURN = "import time\nwhile time.process_time() < 0.5: pass"


@pytest.mark.outside
@pytest.mark.parametrize("start", ["run", "Popen"])
def test_what_a_process_starts_is_counted_even_if_it_lives_longer(start, tmp_path):
    program = f"import subprocess, sys; subprocess.{start}([sys.executable, '-c', {BURN!r}])"
    assert float(used(program, tmp_path)) >= 0.5


@pytest.mark.outside
def test_a_process_that_fails_is_an_error_and_its_messages_are_kept(tmp_path):
    assert "CalledProcessError" in used("raise SystemExit('why')", tmp_path)
    assert (tmp_path / "log").read_text() == "why\n"


def test_a_peer_that_cannot_be_installed_is_unavailable_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks.peers.environment.ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(UnavailableError, match="node is not installed"):
        PEERS["rsp-js"].install()


def test_the_reason_is_the_last_message_and_no_frame_of_a_stack():
    text = "Starting\nCaused by: no memory\n\tat java.lang.Thread.run(Thread.java:840)\n\n"
    assert last_message(text) == "Caused by: no memory"
    assert last_message("\n") == "no message"
