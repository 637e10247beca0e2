"""General queries with SERVICE over HTTP: real servers, and one that fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from SPARQLWrapper import SPARQLWrapper
from typer.testing import CliRunner

from rsp_engine.cli import app
from rsp_engine.engine import Engine
from rsp_engine.model.answers import Answer, Solutions
from tests.patience import stopwatch
from tests.replica.fault_server import Exchange, FaultServer
from tests.replica.servers import OxigraphServer

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.outside

EX = "http://example.org/"
QUERY = f"""PREFIX : <{EX}>
REGISTER RSTREAM :known AS
SELECT ?user ?n ?followers
FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s]
WHERE {{
  WINDOW :w {{ ?user :mentions ?n }}
  SERVICE :users {{ ?user :followers ?followers }}
}}
"""
MENTIONS = f"<{EX}a> <{EX}mentions> 1 . <{EX}b> <{EX}mentions> 2 ."
INSERT = f"INSERT DATA {{ <{EX}a> <{EX}followers> 10 . <{EX}b> <{EX}followers> 20, 21 }}"


def followers(answer: Answer) -> list[tuple[str, int]]:
    assert isinstance(answer.content, Solutions)
    rows = [row.bindings for row in answer.content.rows]
    return [(r["user"].value.removeprefix(EX), int(r["followers"].value)) for r in rows]


def engine_for(endpoint: object, **options: object) -> Engine:
    engine = Engine(**options)  # type: ignore[arg-type]
    engine.service(f"{EX}users", endpoint)  # type: ignore[arg-type]
    engine.register(QUERY)
    engine.bind(f"{EX}s", [(1, MENTIONS), (10_001, MENTIONS), (20_001, MENTIONS)])
    return engine


def test_a_query_is_run_against_a_real_server_as_a_user_calls_it(tmp_path):
    (tmp_path / "known.rspql").write_text(QUERY)
    lines = [{"timestamp": t, "graph": MENTIONS} for t in (1, 10_001)]
    (tmp_path / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with OxigraphServer() as server:
        server.update(INSERT)
        where = [
            str(tmp_path / "known.rspql"),
            *("--stream", f":s={tmp_path / 's.jsonl'}"),
            *("--service", f":users={server.query_url}"),
        ]
        done = CliRunner().invoke(
            app, ["run", *where, "--policy", "EXACT", "--deadline", "20s", "--max-requests", "5"]
        )
    assert done.exit_code == 0, done.output
    for line in map(json.loads, done.stdout.splitlines()):
        values = [row["bindings"]["followers"]["value"] for row in line["rows"]]
        assert values == ["10", "20", "21"]
        assert line["stats"]["exact"] is True
        assert line["stats"]["budget_spent"] == 2
        assert line["stats"]["requests"] == 1


def test_changes_of_a_real_server_are_seen_within_the_budget():
    """One of two keys is fetched at each evaluation, the one that was fetched longest ago.

    Both were loaded at once, and of equals the larger is first: b while all is there, then a, b.
    """
    with OxigraphServer() as server:
        server.update(INSERT)
        answers = engine_for(server.query_url, policy="WSJ-LRU", budget=1).run()
        seen = [followers(next(answers))]
        server.update("DELETE WHERE { ?s ?p ?o }")
        seen += [followers(answer) for answer in answers]
    assert [len(rows) for rows in seen] == [3, 2, 0]


def test_a_wrapper_that_the_user_configured_is_asked():
    with OxigraphServer() as server:
        server.update(INSERT)
        answers = list(engine_for(SPARQLWrapper(server.query_url), policy="EXACT").run())
    assert [followers(a) for a in answers] == [[("a", 10), ("b", 20), ("b", 21)]] * 3


def drip(exchange: Exchange) -> None:
    exchange.head(200, {"Content-Type": "application/sparql-results+json"})
    exchange.drip(exchange.truth(), 0.2)


def silence(exchange: Exchange) -> None:
    exchange.wait(30)
    exchange.close_connection = True


FAULTS: dict[str, Callable[[Exchange], None]] = {
    "error": lambda exchange: exchange.answer(b"", 500),
    "html": lambda exchange: exchange.answer(b"<html>try later</html>"),
    "half": lambda exchange: exchange.answer(exchange.truth()[:-20]),
    "drip": drip,
    "silence": silence,
    "elsewhere": lambda e: e.answer(b"", 302, {"Location": "http://127.0.0.1:9/"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_was_known_is_served_in_time_when_the_endpoint_fails(fault):
    """The snapshot is loaded; then the server fails, and gets well for the last window."""
    with FaultServer() as server:
        server.store.update(INSERT)
        engine = engine_for(server.url, policy="EXACT", deadline="500ms", max_requests=2)
        answers = engine.run()
        first = next(answers)
        server.store.update(f"INSERT DATA {{ <{EX}a> <{EX}followers> 99 }}")
        server.behave = FAULTS[fault]
        with stopwatch() as seconds:
            failed = next(answers)
            assert seconds() < 0.5 + 0.2
        server.behave = Exchange.answer
        last = next(answers)
        answers.close()  # type: ignore[attr-defined]
    assert first.stats["exact"]
    assert "faults" not in first.stats
    assert followers(failed) == followers(first) == [("a", 10), ("b", 20), ("b", 21)]
    assert not failed.stats["exact"]
    assert failed.stats["oldest_ms"] == 10_000
    assert failed.stats["requests"] <= 2
    faults = failed.stats["faults"]
    assert isinstance(faults, dict)
    assert sum(faults.values()) >= 1
    assert followers(last) == [("a", 10), ("a", 99), ("b", 20), ("b", 21)]
    assert last.stats["exact"]


def test_a_server_that_never_answers_leaves_an_answer_without_remote_data():
    with FaultServer(lambda exchange: exchange.answer(b"", 500)) as server:
        answers = list(engine_for(server.url, policy="WSJ-WBM", deadline=300).run())
    assert [followers(answer) for answer in answers] == [[], [], []]
    assert [answer.stats["cold_misses"] for answer in answers] == [2, 2, 2]
    assert all(answer.stats["faults"] for answer in answers)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--service", ":other=http://localhost:1/"], "SERVICE needs a service binding"),
        (["--service", ":users=ftp://localhost/"], "must begin with http:// or https://"),
        (["--service", ":users=http://me:secret@localhost/"], "must not contain a user name"),
        (["--budget", "3"], "--budget needs a service, but none is bound"),
        (["--service", ":users=http://localhost:1/", "--policy", "BEST"], "no policy BEST"),
        (["--service", ":users=http://localhost:1/", "--budget", "-1"], "must not be negative"),
        (["--service", ":users=http://localhost:1/", "--deadline", "soon"], "--deadline soon"),
        (
            ["--service", ":users=http://localhost:1/", "--service", ":x=http://localhost:1/"],
            "no query calls service <http://example.org/x>",
        ),
    ],
)
@pytest.mark.parametrize("word", ["run", "explain"])
def test_what_is_bound_wrongly_is_refused_before_anything_is_sent(tmp_path, word, flags, message):
    (tmp_path / "known.rspql").write_text(QUERY)
    (tmp_path / "s.jsonl").write_text("")
    stream = ["--stream", f":s={tmp_path / 's.jsonl'}"] if word == "run" else []
    done = CliRunner().invoke(app, [word, str(tmp_path / "known.rspql"), *stream, *flags])
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "secret" not in done.output


def test_explain_tells_the_request_and_sends_nothing(tmp_path):
    (tmp_path / "known.rspql").write_text(QUERY)
    with FaultServer() as server:
        flags = ["--service", f":users={server.url}", "--format", "json"]
        done = CliRunner().invoke(app, ["explain", str(tmp_path / "known.rspql"), *flags])
        assert server.queries == []
    assert done.exit_code == 0, done.output
    [service] = json.loads(done.stdout)["physical"]["services"]
    assert service["join_key"] == ["user"]
    assert "VALUES (?place ?user)" in service["request"]
