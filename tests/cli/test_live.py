"""`rsp run` and `rsp replay` with brokers, as a user calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from rsp_engine.cli import app
from rsp_engine.model.extras import install_command
from tests.io.live.engine_thread import until
from tests.io.live.servers import free_port, mosquitto, needs_mosquitto

EX = "http://example.org/"
QUERY = f"""PREFIX : <{EX}>
REGISTER RSTREAM :hot AS SELECT ?room ?t FROM NAMED WINDOW :w ON STREAM :s [RANGE 1s STEP 1s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} }} ORDER BY DESC(?t) LIMIT 1"""
START = 1_700_000_000_000


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hot.rspql").write_text(QUERY)
    quads = [
        f'<{EX}r{n % 5}> <{EX}temperature> "{n}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        f" <{EX}g/{START + 100 * n}> .\n"
        for n in range(40)
    ]
    (tmp_path / "stream.nq").write_text("".join([*quads, "garbage\n"]))
    return tmp_path


def called(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


@needs_mosquitto
def test_a_recorded_stream_is_replayed_to_a_broker_and_ranked_from_there(here):
    """Four seconds of it at four times the speed; the run ends by itself."""
    with mosquitto(here) as broker:
        command = [sys.executable, "-m", "rsp_engine.cli", "run", "hot.rspql", "--runner", "local"]
        command += ["--stream", f":s={broker.url}/rooms/#", "--for", "60s"]
        command += ["--output", "answers.jsonl"]
        running = subprocess.Popen(command, stderr=subprocess.PIPE)  # noqa: S603
        broker.wait_for_subscriber("rooms/#")
        done = called("replay", "stream.nq", f"{broker.url}/rooms/a", "--speed", "4")
        assert done.exit_code == 0, done.output
        assert done.stderr.startswith("40 elements sent to mqtt://")
        assert "1 unreadable one skipped" in done.stderr
        output = here / "answers.jsonl"
        until(lambda: len(output.read_text().splitlines()) == 4)
        time.sleep(2)  # the broker has the last message; now it passes it on
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
    assert running.returncode == 0, told
    found = [json.loads(line) for line in output.read_text().splitlines()]
    assert [a["window"]["close"] - START for a in found] == [0, 1000, 2000, 3000, 4000]
    assert [a["rows"][0]["score"] for a in found] == [0.0, 10.0, 20.0, 30.0, 39.0]


@needs_mosquitto
def test_a_run_ends_after_the_time_it_is_given(here):
    with mosquitto(here) as broker:
        stream = f":s={broker.url}/rooms/#"
        done = called("run", "hot.rspql", "--stream", stream, "--for", "500ms")
    assert done.exit_code == 0, done.output
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "1s"], "--for needs a live stream"),
        (["--for", "soon"], "--for soon: it is not of the form"),
        (["--speed", "2"], "a live stream has its own speed"),
    ],
)
def test_what_does_not_fit_is_refused(here, arguments, said):
    is_live = said != "--for needs a live stream"
    source = f"mqtt://127.0.0.1:{free_port()}/a" if is_live else "stream.nq"
    done = called("run", "hot.rspql", "--stream", f":s={source}", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("source", "target", "code", "said"),
    [
        ("stream.nq", "http://localhost/a", 2, "replayed to MQTT and Kafka"),
        ("stream.nq", "mqtt://localhost/", 2, "it names no topic to send to"),
        ("stream.nq", "mqtt://localhost/a/#", 2, "it names no topic to send to"),
        ("stream.nq", "mqtt://localhost/a?speed=1", 2, "there is no option speed"),
        ("mqtt://localhost/a", "mqtt://localhost/b", 2, "is live, not recorded"),
        ("stream.nq", "mqtt://u:secret@localhost/b", 2, "must not contain a user or a password"),
        ("stream.nq", "mqtt://127.0.0.1:{port}/b", 3, "cannot be reached: Connection refused"),
    ],
)
def test_a_replay_that_cannot_be_is_refused(here, source, target, code, said):
    done = called("replay", source, target.format(port=free_port()))
    assert done.exit_code == code
    assert said in done.stderr
    assert "secret" not in done.stderr


def test_without_the_extra_one_line_says_which_it_is(here, monkeypatch):
    monkeypatch.setattr("rsp_engine.io.sources.spec.find_spec", lambda _: None)
    for arguments in (
        ["replay", "stream.nq", "mqtt://localhost/a"],
        ["run", "hot.rspql", "--stream", ":s=mqtt://localhost/a"],
        ["run", "hot.rspql", "--stream", ":s=wss://localhost/a"],
    ):
        done = called(*arguments)
        assert done.exit_code == 2
        extra = "ws" if "wss" in arguments[-1] else "mqtt"
        assert (
            f"this needs the extra {extra}\n  = hint: install it: {install_command(extra)}\n"
            in done.stderr
        )


def test_these_tests_run_queries_in_this_process():
    assert os.environ["RSP_RUNNER"] == "local"
