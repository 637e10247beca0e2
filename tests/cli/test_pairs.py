"""The queries of pairs of `queries/`, as a user runs them: the same as on the general path."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from rsp_engine import Engine
from rsp_engine.cli import app
from rsp_engine.cli.snapshots import SnapshotPrinter
from tests.data import PROJECT, real_data
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from pathlib import Path

SENSORS = PROJECT / "queries" / "pairs_sensors.rspql"
AUCTION = PROJECT / "queries" / "pairs_auction.rspql"
READINGS, SALES = (450, 250) if TIMES > 1 else (250, 150)
"""How many: the general path takes time by the square of them."""


def answers(query: Path, stream: str, *options: str) -> list[dict[str, Any]]:
    command = ["run", str(query), "--stream", stream, "--match", "element", *options]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def ranks(found: list[dict[str, Any]]) -> list[tuple[dict[str, int], list[tuple[int, float]]]]:
    """Return the windows and the scores: where these are equal, the paths order rows otherwise."""
    return [(a["window"], [(row["rank"], row["score"]) for row in a["rows"]]) for a in found]


def explained(query: Path) -> str:
    return CliRunner().invoke(app, ["explain", str(query), "--match", "element"]).output


@pytest.fixture
def readings(tmp_path) -> str:
    """Readings that have a temperature and a humidity, as a stream."""
    folder = real_data("srbench_lsd")
    rows = csv.reader((folder / "obs9h.csv").read_text().splitlines()[:READINGS])
    table = tmp_path / "readings.csv"
    with table.open("w", newline="") as file:
        made = csv.writer(file)
        made.writerow(["timestamp", "station", "minute", "temperature", "humidity"])
        for time, station, _, temperature, _, _, humidity, *_ in rows:
            if temperature and humidity:
                moment = datetime.fromisoformat(time[:19]).replace(tzinfo=UTC)
                minute = int(moment.timestamp()) // 60
                made.writerow(
                    [f"{moment:%Y-%m-%dT%H:%M:%SZ}", station, minute, temperature, humidity]
                )
    template = tmp_path / "readings.ttl"
    template.write_text(
        "@prefix : <http://example.org/weather/> . "
        '<http://example.org/weather/{station}-{minute}> :minute "{minute}"^^xsd:integer ;'
        ' :temperature "{temperature}"^^xsd:decimal ; :humidity "{humidity}"^^xsd:decimal .'
    )
    return f":readings={table}?template={template}"


@pytest.fixture
def sales(tmp_path) -> str:
    """A fortnight of sales: the better a product, the higher the bids, as a rule."""
    chance = random.Random(12)  # noqa: S311 - repeatable on purpose
    table = tmp_path / "sales.csv"
    start = datetime(2024, 3, 1, tzinfo=UTC)
    with table.open("w", newline="") as file:
        made = csv.writer(file)
        made.writerow(["timestamp", "id", "size", "weight", "bid"])
        for number in range(SALES):
            moment = start + timedelta(minutes=80 * number)
            size, weight = chance.randint(5, 60), chance.randint(1, 30)
            bid = size * 3 + weight + chance.randint(0, 90) + number / 1000
            made.writerow([f"{moment:%Y-%m-%dT%H:%M:%SZ}", number, size, weight, f"{bid:.3f}"])
    template = tmp_path / "sales.ttl"
    template.write_text(
        "@prefix : <http://example.org/auction/> . <http://example.org/auction/{id}>"
        ' :size "{size}"^^xsd:integer ; :weight "{weight}"^^xsd:integer ;'
        ' :finalBid "{bid}"^^xsd:decimal .'
    )
    return f":sales={table}?template={template}"


def test_unlike_readings_are_those_of_the_general_path(readings):
    assert "K-skyband" in explained(SENSORS)
    found = answers(SENSORS, readings)
    assert ranks(found) == ranks(answers(SENSORS, readings, "--operator", "general"))
    assert len(found) > 3


def test_odd_bids_are_those_of_the_general_path(sales):
    assert "each of its 3 local scores" in explained(AUCTION)
    found = answers(AUCTION, sales)
    rows = [answer["rows"] for answer in found]
    assert rows == [a["rows"] for a in answers(AUCTION, sales, "--operator", "general")]
    assert len(found) > 10


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["readings", "sales"])
def test_pairs_are_the_same_on_spark(name, request, monkeypatch):
    query, stream = SENSORS if name == "readings" else AUCTION, request.getfixturevalue(name)
    expected = answers(query, stream)
    assert expected
    monkeypatch.setenv("RSP_RUNNER", "spark")
    assert answers(query, stream) == expected


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_a_snapshot_is_printed_when_the_run_ends(sales):
    command = ["run", str(AUCTION), "--stream", sales, "--match", "element"]
    done = CliRunner().invoke(app, [*command, "--snapshot", "1,7d"])
    assert done.exit_code == 0, done.output
    [snapshot] = lines(done.stderr)
    last = lines(done.stdout)[-1]
    assert snapshot["stats"] == {"snapshot": {"k": 1, "range": 7 * 86_400_000}}
    assert (snapshot["query"], snapshot["window"]) == (last["query"], last["window"])
    assert snapshot["rows"] == last["rows"][:1]


def test_a_snapshot_is_printed_with_the_next_answer_after_a_signal(capsys):
    engine = Engine()
    stream = [(n, f"@prefix : <http://example.org/> . :s{n} :p {n * n} .") for n in range(1, 13)]
    query = engine.register(
        """PREFIX : <http://example.org/> SELECT ?a ?b (ABS(?x - ?y) AS ?d)
        FROM NAMED WINDOW :w ON :s [RANGE 4ms STEP 4ms]
        WHERE { WINDOW :w { ?a :p ?x . ?b :p ?y FILTER (STR(?a) < STR(?b)) } }
        ORDER BY ?d LIMIT 2"""
    )
    engine.bind("http://example.org/s", stream)
    running = engine.run()
    before = signal.getsignal(signal.SIGUSR1)
    answers = SnapshotPrinter([query], "1,2").after_each(running)
    next(answers)
    next(answers)
    assert not capsys.readouterr().err
    os.kill(os.getpid(), signal.SIGUSR1)
    next(answers)
    [snapshot] = lines(capsys.readouterr().err)
    assert [row["score"] for row in snapshot["rows"]] == [15.0]
    assert not list(answers)
    assert signal.getsignal(signal.SIGUSR1) is before
    [snapshot] = lines(capsys.readouterr().err)
    assert [row["score"] for row in snapshot["rows"]] == [23.0]


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        ("4,1d", "at most 3"),
        ("3,8d", "at most 604800000"),
        ("0", "at least 1"),
        ("3,x", "not a number of pairs"),
        ("", "not a number of pairs"),
    ],
)
def test_a_snapshot_that_cannot_be_is_refused_before_the_run(sales, snapshot, reason):
    command = ["run", str(AUCTION), "--stream", sales, "--match", "element"]
    done = CliRunner().invoke(app, [*command, "--snapshot", snapshot])
    assert done.exit_code == 2
    assert not done.stdout
    assert reason in done.stderr


def test_a_snapshot_needs_a_ranking_of_pairs(sales):
    command = ["run", str(AUCTION), "--stream", sales, "--snapshot", "1"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert "needs a ranking of pairs" in done.stderr
