"""Secrets are sent to the service that they are for, and shown nowhere.

Each is a word that nothing else holds; it is looked for in all that a run prints and writes.
"""

from __future__ import annotations

import base64
import json

import pytest

from rsp_engine.http_client.access import origin_of, variables_of
from tests.cli.test_run import rsp
from tests.evaluators.test_served_http import INSERT, MENTIONS, QUERY
from tests.replica.fault_server import Exchange, FaultServer

TOKEN, PASSWORD = "canary-token-7f3a", "canary-password-91bc"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rspql").write_text(QUERY)
    lines = [{"timestamp": t, "graph": MENTIONS} for t in (1, 10_001, 20_001)]
    (tmp_path / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return tmp_path


def refuses(exchange: Exchange) -> None:
    """Refuse the request, and echo it: a server may do that."""
    exchange.answer(str(dict(exchange.headers)).encode(), 401, {"X-Sent": str(exchange.headers)})


KINDS = {"token": {"TOKEN": TOKEN}, "password": {"USER": "me", "PASSWORD": PASSWORD}}
ALL = [TOKEN, PASSWORD, base64.b64encode(f"me:{PASSWORD}".encode()).decode()]


@pytest.mark.parametrize("behave", [Exchange.answer, refuses])
@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_is_sent_and_shown_nowhere(kind, behave, folder, monkeypatch):
    look_for_secrets(folder, monkeypatch, KINDS[kind], behave)


@pytest.mark.usefixtures("spark")
def test_a_secret_is_in_no_checkpoint_of_spark(folder, monkeypatch):
    kept = ["--runner", "spark", "--checkpoint", "state"]
    look_for_secrets(folder, monkeypatch, KINDS["token"], Exchange.answer, *kept)
    assert any((folder / "state").rglob("*.json"))


def look_for_secrets(folder, monkeypatch, secrets, behave, *more):
    with FaultServer(behave) as server:
        server.store.update(INSERT)
        for name, value in secrets.items():
            monkeypatch.setenv(f"{variables_of(origin_of(server.url))}_{name}", value)
        service = ["--service", f":users={server.url}"]
        where = ["run", "q.rspql", "--stream", ":s=s.jsonl", *service]
        runs = [
            rsp(*where, "--output", "answers.jsonl", "--dead-letters", "dead.jsonl", *more),
            rsp(*where, "--dry-run"),
            rsp("explain", "q.rspql", *service),
            rsp("doctor", *service),
        ]
        sent = {headers.get("Authorization", "") for headers in server.seen_headers}
    assert [result.exit_code for result in runs[:3]] == [0, 0, 0]
    assert len(sent) == 1, "it is what the service needs"
    assert sent <= {f"Bearer {TOKEN}", f"Basic {ALL[2]}"}
    shown = [result.output for result in runs]
    files = [path for path in folder.rglob("*") if path.is_file()]
    written = [path.read_bytes().decode(errors="replace") for path in files]
    assert {"answers.jsonl", "dead.jsonl"} <= {path.name for path in files}
    assert [secret for secret in ALL for text in [*shown, *written] if secret in text] == []
