"""AT-VOI on Spark, with a real server that tells what has changed: local == Spark, to the byte."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from rsp_engine.cli import app
from tests.evaluators.test_voi import EX, MODIFIED, QUERY, USERS, Changing, stream
from tests.replica.servers import OxigraphServer

pytestmark = pytest.mark.usefixtures("spark")


def test_rsp_run_gives_the_same_bytes_on_both_drivers(tmp_path):
    (tmp_path / "best.rspql").write_text(QUERY)
    lines = (json.dumps({"timestamp": at, "graph": text}) for at, text in stream(60))
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    given = []
    with OxigraphServer() as server:
        data = " ".join(
            f"<{EX}{user}> <{EX}followers> {Changing().value(user, 0)} ; <{MODIFIED}> 1 ."
            for user in USERS
        )
        server.update(f"INSERT DATA {{ {data} }}")
        where = ["run", str(tmp_path / "best.rspql"), "--stream", f":s={tmp_path / 's.jsonl'}"]
        where += ["--service", f":BKG={server.query_url}", "--policy", "AT-VOI", "--budget", "4"]
        for signal in ([], ["--modified", ":BKG=dct:modified"]):
            for runner in ("local", "spark"):
                done = CliRunner().invoke(app, [*where, "--runner", runner, *signal])
                assert done.exit_code == 0, done.output
                given.append(done.stdout)
    assert len(given[0].splitlines()) > 15
    assert given[0] == given[1]
    assert given[2] == given[3]
    assert given[0] != given[2]
