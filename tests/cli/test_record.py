"""`rsp record` against a real server, as a user calls it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from pyoxigraph import Literal, NamedNode
from typer.testing import CliRunner

from rsp_engine.cli import app
from rsp_engine.replica.endpoints.endpoint import UNLIMITED
from rsp_engine.replica.endpoints.recorded import read_csv
from rsp_engine.replica.pattern import RemotePattern
from tests.replica.servers import OxigraphServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRICE = "http://example.org/price"
QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :best AS
SELECT ?product ?price
FROM NAMED WINDOW :recent ON STREAM :clicks [RANGE PT1M STEP PT1M]
WHERE {
  WINDOW :recent { ?click :on ?product }
  SERVICE :shop { ?product :price ?price }
}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[OxigraphServer]:
    with OxigraphServer() as server:
        yield server


@pytest.fixture
def shop(server: OxigraphServer) -> OxigraphServer:
    server.update("CLEAR ALL")
    price(server, "a", 1)
    return server


def price(server: OxigraphServer, product: str, value: int) -> None:
    subject = f"<http://example.org/{product}> <{PRICE}>"
    server.update(f"DELETE WHERE {{ {subject} ?p }} ; INSERT DATA {{ {subject} {value} }}")


def record(*words: str):
    return CliRunner().invoke(app, ["record", *words])


def test_a_property_is_recorded_again_and_again(shop, tmp_path):
    path = tmp_path / "prices.csv"
    words = (shop.query_url, "--property", PRICE, "--output", str(path), "--every", "150ms")
    done = record(*words, "--for", "900ms")
    assert done.exit_code == 0, done.stderr
    assert "snapshots, 1 row added" in done.stderr  # several, and one of them had something new
    price(shop, "a", 2)
    price(shop, "b", 7)
    again = record(*words, "--for", "1ms")
    assert again.exit_code == 0
    assert f"1 snapshot, 2 rows added to {path}, which has 2 keys" in again.stderr
    lines = path.read_text().splitlines()
    assert lines[0] == "time,key,value"
    assert [line.split(",", 1)[1] for line in lines[1:]] == [
        "<http://example.org/a>,1",
        "<http://example.org/a>,2",
        "<http://example.org/b>,7",
    ]
    assert abs(int(lines[1].split(",")[0]) / 1000 - time.time()) < 60


def test_the_clause_of_a_query_is_recorded_for_that_query(shop, tmp_path):
    (tmp_path / "q.rspql").write_text(QUERY)
    path = tmp_path / "prices.csv"
    words = ("--query", str(tmp_path / "q.rspql"), "--output", str(path), "--for", "1ms")
    done = record(shop.query_url, *words)
    assert done.exit_code == 0, done.stderr
    assert path.read_text().startswith("time,product,price\n")
    pattern = RemotePattern("http://example.org/shop", "{}", ("product",), ("price",))
    recorded = read_csv(path, pattern)
    assert recorded.snapshot(UNLIMITED, 2**53).answers == {
        (NamedNode("http://example.org/a"),): ({"price": Literal(1)},)
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_recording_whose_file_is_whole(shop, tmp_path, number):
    path = tmp_path / "prices.csv"
    words = ("--property", PRICE, "--output", str(path), "--every", "20ms")
    process = subprocess.Popen(  # noqa: S603
        (sys.executable, "-m", "rsp_engine.cli", "record", shop.query_url, *words),
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while time.monotonic() < until and not (path.exists() and path.read_text().count("\n") > 1):
        time.sleep(0.05)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert "1 row added" in told
    assert path.read_text().endswith(",<http://example.org/a>,1\n")


def test_a_server_that_is_not_there_is_told_and_nothing_is_written_but_the_header(tmp_path):
    path = tmp_path / "prices.csv"
    words = ("--property", PRICE, "--output", str(path), "--for", "1ms", "--deadline", "2s")
    done = record("http://127.0.0.1:9/query", *words)
    assert done.exit_code == 3
    assert "a snapshot failed: " in done.stderr
    assert path.read_text() == "time,key,value\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name what to record"),
        (("--property", "not an iri"), "--property: "),
        (("--property", PRICE, "--every", "soon"), "--every soon"),
        (("--property", PRICE, "--every", "0ms"), "--every 0ms: it must be at least"),
        (("--property", PRICE, "--service", "http://e.org/s"), "needs --query"),
        (("--property", PRICE, "--allow", "http://other.example"), "is not allowed"),
        (("--query", "none.rspql"), "none.rspql"),
    ],
)
def test_what_a_user_gets_wrong_is_told_before_anything_is_asked(tmp_path: Path, words, message):
    path = tmp_path / "prices.csv"
    done = record("http://127.0.0.1:9/query", "--output", str(path), *words)
    assert done.exit_code == 2, done.stderr
    assert message in done.stderr
    assert not path.exists()


def test_which_of_several_services_is_asked(tmp_path):
    two = QUERY.replace("}\n}", "}\n  SERVICE :stock { ?product :left ?left }\n}")
    (tmp_path / "q.rspql").write_text(two)
    words = ("--query", str(tmp_path / "q.rspql"), "--output", str(tmp_path / "h.csv"))
    done = record("http://127.0.0.1:9/query", *words)
    assert done.exit_code == 2
    assert "which SERVICE of" in done.stderr
    assert "http://example.org/shop, http://example.org/stock" in done.stderr
