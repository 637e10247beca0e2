"""Sets of queries: each is answered as if it ran alone, whatever work it shares with others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.io.sinks import open_sink
from rsp_engine.io.sinks.jsonl import JSONL
from tests.drivers.split_runs import Shared, in_splits
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
HEAD = (
    f"PREFIX : <{EX}> REGISTER {{r2s}} {{name}} AS SELECT {{shown}}"
    " FROM NAMED WINDOW :w ON :s [RANGE {range}ms STEP {step}ms]"
)
BODIES = (
    ("?s ?v", "{{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT {k}"),
    ("?s ?v", "{{ WINDOW :w {{ ?s :p ?v }} FILTER(?v > 2) }} ORDER BY DESC(?v) LIMIT {k}"),
    ("?s ?v", "{{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY ?v LIMIT 2 OFFSET {k}"),
    ("?s (SUM(?v) AS ?t)", "{{ WINDOW :w {{ ?s :p ?v }} }} GROUP BY ?s ORDER BY ?t LIMIT {k}"),
    ("?s ?v ?u", "{{ WINDOW :w {{ ?s :p ?v ; :q ?u }} }} ORDER BY ?v ?u ?s LIMIT {k}"),
    ("(COUNT(*) AS ?n)", "{{ WINDOW :w {{ ?s ?p ?v }} }} HAVING(?n > {k})"),
    ("*", "{{ WINDOW :w {{ ?s :p ?v . ?x :q ?v }} }}"),
    ("?s ?v", "{{ WINDOW :w {{ ?s :p ?v }} FILTER(?v > {k}) }}"),
    ("?s ?v", "{{ WINDOW :w {{ ?s :q ?v }} FILTER(?v != 2) }}"),
    ("?s ?p ?v", "{{ WINDOW :w {{ ?s ?p ?v }} }}"),
)
WINDOWS = ((3, 3), (6, 3), (9, 3), (7, 3), (2, 3), (6, 2))
"""Ranges and steps: the first three cut the stream at the same instants."""


@st.composite
def query_sets(draw: st.DrawFn) -> list[str]:
    """Draw queries that differ in a few parts, or in their names only."""
    queries: list[str] = []
    for number in range(draw(st.integers(1, 5))):
        shown, body = draw(st.sampled_from(BODIES))
        span, step = draw(st.sampled_from(WINDOWS))
        query = (HEAD + " WHERE " + body).format(
            r2s=draw(st.sampled_from(("RSTREAM", "ISTREAM"))),
            name=f"<{EX}q{number}>",
            shown=shown,
            range=span,
            step=step,
            k=draw(st.integers(1, 3)),
        )
        spaced = draw(st.booleans())
        queries.append(query.replace(" ", " \n ") + " # spaced" if spaced else query)
    return queries


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw N-Quads in the order of time."""
    names = st.sampled_from("abc")
    parts = st.tuples(st.integers(0, 25), names, st.sampled_from("pq"), st.integers(0, 5))
    return "".join(
        f'<{EX}{s}> <{EX}{p}> "{v}"^^<{XSD}integer> <{EX}g/{time}> .\n'
        for time, s, p, v in sorted(draw(st.lists(parts, max_size=30)))
    )


def answers(queries: Sequence[str], path: Path) -> dict[str, str]:
    """Return the answers of each query of a run, as text without their names."""
    engine = Engine()
    for query in queries:
        engine.register(query)
    engine.bind(f"{EX}s", str(path))
    found: dict[str, str] = {}
    writer = JSONL.writer()
    for answer in engine.run():
        text = str(writer(answer)).replace(answer.query, "")
        found[answer.query] = found.get(answer.query, "") + text
    return found


@pytest.mark.parametrize("shared", [None, Shared()], ids=["here", "from pane files"])
@examples(40)
@given(queries=query_sets(), text=files(), size=st.sampled_from((1, 200, 4000)))
def test_every_query_of_a_set_is_answered_as_alone(
    shared: Shared | None, queries: list[str], text: str, size: int
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.nq"
        path.write_text(text)
        alone: dict[str, str] = {}
        for query in queries:
            alone |= answers([query], path)
        assert answers(queries, path) == alone
        with in_splits(size=size, shared=shared):
            assert answers(queries, path) == alone


@pytest.mark.parametrize("body", BODIES)
def test_windows_of_all_sizes_share_what_they_can(body: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_text(
        "".join(
            f'<{EX}{"abc"[n % 3]}> <{EX}{"pq"[n % 2]}> "{n % 7}"^^<{XSD}integer> <{EX}g/{n}> .\n'
            for n in range(40)
        )
    )
    queries = [
        (HEAD + " WHERE " + body[1]).format(
            r2s="RSTREAM", name=f"<{EX}q{k}-{n}>", shown=body[0], range=span, step=step, k=k
        )
        for n, (span, step) in enumerate(WINDOWS)
        for k in (1, 3)
    ]
    alone: dict[str, str] = {}
    for query in queries:
        alone |= answers([query], path)
    assert answers(queries, path) == alone


def test_a_query_that_another_one_reads_is_evaluated_by_itself(tmp_path: Path) -> None:
    made = (
        f"PREFIX : <{EX}> REGISTER STREAM :{{}} AS CONSTRUCT {{{{ ?s :p ?v }}}}"
        " FROM NAMED WINDOW :w ON :s [RANGE 6ms STEP 3ms] WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"
    )
    reading = (
        f"PREFIX : <{EX}> REGISTER RSTREAM :read AS SELECT *"
        " FROM NAMED WINDOW :w ON :made [RANGE 6ms STEP 3ms] WHERE { WINDOW :w { ?s :p ?v } }"
    )
    path = tmp_path / "s.nq"
    path.write_text("".join(f"<{EX}a> <{EX}p> <{EX}{t}> <{EX}g/{t}> .\n" for t in range(1, 12)))
    together = answers([made.format("other"), made.format("made"), reading], path)
    assert together[f"{EX}read"] == answers([made.format("made"), reading], path)[f"{EX}read"]
    assert together[f"{EX}other"] == together[f"{EX}made"]


def run_set(folder: Path, runner: str) -> None:
    """Run the queries of a folder with a checkpoint that is written often."""
    from rsp_engine.drivers import local

    local._COMMIT_S = 0
    engine = Engine(
        runner="spark" if runner == "spark" else "local",
        master="local[1]" if runner == "spark" else None,
        checkpoint=folder / "checkpoint",
        split_bytes=4000,
    )
    for query in json.loads((folder / "queries.json").read_text()):
        engine.register(query)
    engine.bind(f"{EX}s", str(folder / "s.nq"))
    with closing(open_sink("jsonl", str(folder / "answers.jsonl"), "SELECT", keep=True)) as sink:
        for answer in engine.run([sink]):
            sink.write(answer)


KILLED = """
import sys
from pathlib import Path
from tests.drivers.test_query_sets import run_set
run_set(Path(sys.argv[1]), sys.argv[2])
"""
TOGETHER = [
    (HEAD + " WHERE " + body).format(
        r2s="RSTREAM", name=f"<{EX}q{number}-{k}>", shown=shown, range=span, step=step, k=k
    )
    for number, ((shown, body), (span, step)) in enumerate(zip(BODIES, cycle(WINDOWS)))
    for k in (2, 3)
]
"""Queries of each body, and of all windows."""


def killed_set(folder: Path, runner: str, kills: Sequence[int]) -> None:
    """Kill a run of the set each time that it has written so many lines; check its answers."""
    path, out = folder / "s.nq", folder / "answers.jsonl"
    path.write_text(
        "".join(
            f'<{EX}{"abcdefg"[n * 5 % 7]}> <{EX}{"pq"[n % 2]}> "{n * 31 % 17}"^^<{XSD}integer>'
            f" <{EX}g/{n // 3}> .\n"
            for n in range(1500)
        )
    )
    queries = [*TOGETHER, *(query.replace(f"<{EX}q", f"<{EX}equal-") for query in TOGETHER[:4])]
    (folder / "queries.json").write_text(json.dumps(queries))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED, str(folder), runner]
    for lines in kills:
        process = subprocess.Popen(command, env=environment, start_new_session=True)  # noqa: S603
        while process.poll() is None:
            if out.exists() and out.read_bytes().count(b"\n") >= lines:
                os.killpg(process.pid, signal.SIGKILL)
                break
            time.sleep(0.002)
        assert process.wait() == -signal.SIGKILL, "it was over before"
    subprocess.run(command, env=environment, check=True)  # noqa: S603
    written: dict[str, str] = {}
    for line in out.read_text().splitlines():
        name = json.loads(line)["query"]
        written[name] = written.get(name, "") + line.replace(name, "") + "\n"
    alone: dict[str, str] = {}
    for query in queries:
        alone |= answers([query], path)
    assert written == alone


@pytest.mark.outside
def test_a_set_whose_process_is_killed_answers_each_query_as_alone(tmp_path: Path) -> None:
    killed_set(tmp_path, "local", (40, 700, 1500))
