"""The archive of Java's classes: the first run makes it, and no run depends on it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.thoroughness import TIMES

EX = "http://example.org/"
QUERY = f"""PREFIX : <{EX}> SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE 10ms STEP 5ms]
WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 2"""


@pytest.mark.skipif(TIMES == 1, reason="RSP_THOROUGH=1 asks for it: Java starts four times")
def test_runs_give_the_same_answers_without_with_and_with_a_damaged_archive(tmp_path):
    (tmp_path / "q.rspql").write_text(QUERY)
    lines = [f'<{EX}s{n}> <{EX}p> "{n % 7}" <{EX}g/{n}> .\n' for n in range(40)]
    (tmp_path / "s.nq").write_text("".join(lines))
    cache = tmp_path / "cache"
    given = {name: each for name, each in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    command = [sys.executable, "-m", "rsp_engine.cli", "run", "q.rspql", "--stream", ":s=s.nq"]
    command += ["--runner", "spark", "--master", "local[1]"]

    def run() -> tuple[str, str]:
        done = subprocess.run(  # noqa: S603 - our own
            command,
            cwd=tmp_path,
            env={**given, "RSP_CACHE_DIR": str(cache)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout, done.stderr.splitlines()[0]

    answers, notice = run()
    assert "once, it stores its classes" in notice
    [archive] = cache.glob("*.jsa")
    assert run() == (answers, "starting Spark ...")
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-1000])
    found, notice = run()
    assert found == answers
    assert "once, it stores its classes" in notice, "it is made again"
    [archive] = cache.glob("*.jsa")
    changed = bytearray(archive.read_bytes())
    changed[len(changed) // 2] ^= 1
    archive.write_bytes(changed)
    assert run()[0] == answers
