"""Outputs of a run: several of them, sinks by URL, `[[sink]]`, and what is not delivered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.cli.test_run import here, rsp
from tests.data import PROJECT
from tests.io.delivery.receivers import WebhookServer, accept, until

__all__ = ["here"]

pytestmark = pytest.mark.outside

RUN = ["run", "hot.rspql", "--stream", ":readings=readings.jsonl", "--runner", "local"]
QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :warm AS SELECT ?room ?t FROM NAMED WINDOW :w ON :s [RANGE 1s STEP 1s]
WHERE { WINDOW :w { ?room :temperature ?t } }"""


def test_answers_go_to_several_outputs_each_in_its_format(here):
    plain = rsp(*RUN)
    done = rsp(*RUN, "--output", "-", "--output", "a.csv?format=csv&times=iso", "--output", "b")
    assert done.exit_code == 0, done.output
    assert done.stdout == plain.stdout
    assert (here / "b").read_text() == plain.stdout
    header, first, *_ = (here / "a.csv").read_text().splitlines()
    assert header.startswith("open,close,rank")
    assert first.startswith("1970-01-01T")


def test_a_sink_gets_what_a_file_gets_and_the_summary_says_so(here):
    with WebhookServer() as server:
        done = rsp(*RUN, "--output", server.url, "--output", "answers.jsonl")
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in (here / "answers.jsonl").read_text().splitlines()]
    got = [json.loads(each.body) for each in server.received]
    assert [{k: v for k, v in each.items() if k != "id"} for each in got] == lines
    assert f"{len(lines)} answers delivered to {server.url}\n" in done.stderr
    assert done.stdout == ""


WRONG = {
    "the same output twice": (["--output", "a", "--output", "a"], "--output a is named twice"),
    "an unknown option": (["--output", "a?frmat=csv"], "no option frmat\n  = hint: did you mean"),
    "an unknown format": (["--output", "a?format=xml"], "there is no format `xml`"),
    "an unknown scheme": (["--output", "ftp://host/a"], "there are no sinks of ftp://"),
    "a server that is not allowed": (
        ["--output", "http://127.0.0.1:9/hook", "--allow", "http://127.0.0.1:10"],
        "the origin http://127.0.0.1:9 is not allowed",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_output_is_refused_before_anything_runs(here, case):
    flags, said = WRONG[case]
    done = rsp(*RUN, *flags)
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dry_run_contacts_nobody(here):
    with WebhookServer() as server:
        done = rsp(*RUN, "--output", server.url, "--dry-run")
        assert (done.exit_code, server.requests) == (0, 0), done.output


TOML = """
[run]
queries = ["hot.rspql"]
runner = "local"
output = "plain.jsonl"
[streams]
":readings" = "readings.jsonl"
"""


def test_each_sink_of_the_configuration_is_an_output_with_its_options(here, tmp_path):
    with WebhookServer() as server:
        (here / "rsp.toml").write_text(
            f'{TOML}\n[[sink]]\nto = "{server.url}?room=7"\nformat = "csv"\n'
            '\n[[sink]]\nto = "table.csv"\nformat = "csv"\n'
        )
        done = rsp("run", "--config", "rsp.toml")
        assert done.exit_code == 0, done.output
    assert len((here / "plain.jsonl").read_text().splitlines()) == len(server.received) > 0
    rows = (here / "table.csv").read_bytes().splitlines()
    got = [each.body.splitlines() for each in server.received]
    assert rows == [rows[0], *(line for lines in got for line in lines[1:])]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[sink]\nto = 'a'", "[sink] must be a list\n  = hint: write [[sink]]"),
        ("[[sink]]\nurl = 'a'", "a [[sink]] has no address, but url"),
        ("[[sink]]\nto = 'a'\nroom = [1]", "room in [[sink]] must be text, a number or a boolean"),
        ("[[sink]]\nto = 'mqtt://host/a'\nretian = true", "there is no option retian"),
    ],
)
def test_a_wrong_sink_of_the_configuration_is_refused_by_name(here, text, said):
    (here / "rsp.toml").write_text(TOML + text)
    done = rsp("run", "--config", "rsp.toml")
    assert done.exit_code == 2, done.output
    assert said in done.stderr


def test_a_file_that_nobody_named_sends_answers_nowhere(here):
    with WebhookServer() as server:
        (here / "rsp.toml").write_text(f'{TOML}\n[[sink]]\nto = "{server.url}?key=hush?"\n')
        done = rsp("run")
    assert done.exit_code == 2
    assert "would send the answers to another program" in done.stderr
    assert "hint: allow it explicitly: --output http" in done.stderr
    assert "hush" not in done.stderr
    assert server.requests == 0


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_not_delivered_is_told_and_delivered_by_the_next_run_if_it_is_kept(here, kept):
    server = WebhookServer()
    more = ["--checkpoint", "state"] if kept else []
    flags = [*RUN, "--output", server.url, "--delivery-wait", "300ms", *more]
    done = rsp(*flags, "--manifest", "run.json")
    assert done.exit_code == 3, done.output
    count = json.loads((here / "run.json").read_text())["sinks"][0]["waiting"]
    assert f"0 answers delivered to {server.url}, {count} not;" in done.stderr
    assert f"error: {count} answers were not delivered to {server.url}: the server" in done.stderr
    assert ("run the same command again" if kept else "they are lost") in done.stderr
    assert json.loads((here / "run.json").read_text())["state"] == "failed"
    with server:
        again = rsp(*flags)
    assert again.exit_code == 0, again.output
    assert len({each.id for each in server.received}) == len(server.received) == count


@pytest.fixture
def story(tmp_path):
    """A stream of many small windows."""
    (tmp_path / "q.rspql").write_text(QUERY)
    lines = (
        f'<http://example.org/r> <http://example.org/temperature> "{n}"'
        f" <http://example.org/g/{1000 * n + 1}> .\n"
        for n in range(30_000)
    )
    (tmp_path / "s.nq").write_text("".join(lines))
    return tmp_path


def started(folder, *flags: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rsp_engine.cli", "run", "q.rspql", "--stream=:s=s.nq"]
    return subprocess.Popen(  # noqa: S603 - our own
        [*command, "--runner=local", *flags],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("more", [["--checkpoint=state"], []], ids=["kept", "in memory"])
def test_a_full_outbox_stops_the_input_and_says_so_until_there_is_room(story, more, request):
    gate = threading.Event()

    def behave(exchange):
        gate.wait(60)
        accept(exchange)

    with WebhookServer(behave) as server:
        port = ["--output", f"{server.url}?room=20000&timeout=60s", "--output", "answers.jsonl"]
        process = started(story, *port, "--split-bytes=20000", *more)
        request.addfinalizer(process.wait)
        request.addfinalizer(process.kill)
        assert process.stderr is not None
        full = "its outbox is full (20,000 bytes); the input waits"
        assert any(full in line for line in process.stderr)
        answers = story / "answers.jsonl"
        size = answers.stat().st_size
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        assert answers.stat().st_size <= size + 20_000, "nothing more is read"
        assert len(answers.read_text().splitlines()) < 5_000
        gate.set()
        until(lambda: len(server.received) > 500)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    if more:
        assert process.returncode == 0, said
        assert len(server.received) == len(answers.read_text().splitlines())
    else:
        assert process.returncode == 143, "such a run ends at once"
