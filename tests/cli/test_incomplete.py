"""The queries over several streams of `queries/`, as a user runs them: as on the general path."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from typer.testing import CliRunner

from rsp_engine.cli import app
from rsp_engine.experiments.datasets.incomplete import write_streams
from tests.data import PROJECT, real_data
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from pathlib import Path


class Asked(NamedTuple):
    """A query, where its streams are, and the ranges of their attributes."""

    name: str
    streams: dict[str, str]
    ranges: dict[str, str]


def answers(asked: Asked, *options: str) -> list[dict[str, Any]]:
    command = ["run", str(PROJECT / "queries" / f"{asked.name}.rspql"), *options]
    for stream, source in asked.streams.items():
        command += ["--stream", f":{stream}={source}"]
    for stream, told in asked.ranges.items():
        command += ["--range", f":{stream}={told}"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def told(found: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return [(answer["window"], answer["rows"]) for answer in found]


@pytest.fixture
def flows(tmp_path) -> Asked:
    write_streams(tmp_path, 2000)
    routers = ("router1", "router2", "router3")
    streams = {name: f"{tmp_path / name}.csv?template={tmp_path}/flows.ttl" for name in routers}
    return Asked("flows", streams, dict.fromkeys(routers, "0,1000001"))


@pytest.fixture
def cameras(tmp_path) -> Asked:
    """No ranges are declared: that speeds are above 1 is detected."""
    write_streams(tmp_path, 2000)
    names = ("northCamera", "southCamera", "bridgeCamera")
    streams = {name: f"{tmp_path / name}.csv?template={tmp_path}/cameras.ttl" for name in names}
    return Asked("cameras", streams, {})


@pytest.fixture
def stations(tmp_path) -> Asked:
    """Real readings, one stream per property; a station does not report all of them."""
    rows = csv.reader((real_data("srbench_lsd") / "obs9h.csv").read_text().splitlines()[:1500])
    table = tmp_path / "readings.csv"
    with table.open("w", newline="") as file:
        made = csv.writer(file)
        made.writerow(["timestamp", "station", "humidity", "temperature", "gust"])
        for time, station, _, humidity, temperature, _, _, _, gust, *_ in rows:
            moment = datetime.fromisoformat(time[:19]).replace(tzinfo=UTC)
            made.writerow([f"{moment:%Y-%m-%dT%H:%M:%SZ}", station, humidity, temperature, gust])
    streams = {}
    for stream, name in (
        ("temperatures", "temperature"),
        ("humidities", "humidity"),
        ("gusts", "gust"),
    ):
        template = tmp_path / f"{stream}.ttl"
        template.write_text(
            "@prefix : <http://example.org/weather/> . <http://example.org/weather/{station}>"
            f' :{name} "{{{name}}}"^^xsd:decimal .'
        )
        streams[stream] = f"{table}?template={template}"
    return Asked("stations", streams, {"temperatures": "0,130", "humidities": "0,100"})


NAMES = ["flows", "cameras", "stations"]


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_of_eaa_is_that_of_the_general_path(name, request):
    asked = request.getfixturevalue(name)
    found = answers(asked)
    assert {answer["stats"]["exact"] for answer in found} == {True}
    assert len(found) > 10
    assert any(len(answer["rows"]) >= 5 for answer in found)
    general = answers(asked._replace(ranges={}), "--operator", "general")
    assert told(found) == told(general)
    assert told(answers(asked, "--operator", "sla")) == told(general)


def flows_of(answer: dict[str, Any]) -> set[str]:
    return {json.dumps(row["bindings"]["flow"]) for row in answer["rows"]}


@pytest.mark.parametrize("options", [("--operator", "approximate"), ("--max-instances", "200")])
def test_an_approximate_answer_says_so(flows, options):
    found = answers(flows, *options)
    exact = answers(flows)
    assert {json.dumps(answer["stats"]) for answer in found} == {
        json.dumps({"exact": False, "approximate": True})
    }
    shares = [
        len(flows_of(mine) & flows_of(every)) / len(flows_of(every))
        for mine, every in zip(found, exact, strict=True)
    ]
    assert sum(shares) / len(shares) >= 0.8


def explained(path: Path, *options: str) -> str:
    return CliRunner().invoke(app, ["explain", str(path), *options]).output


def test_the_plan_says_what_is_ranked_and_how():
    flows, stations = (PROJECT / "queries" / f"{name}.rspql" for name in ("flows", "stations"))
    said = explained(flows, "--range", ":router1=0,5000")
    assert "operator EAA, the best 10" in said
    assert "up to 5000 of <http://example.org/net/router1>, 1 of <http" in said
    said = explained(stations, "--operator", "approximate")
    assert "operator approximate, the best 5" in said
    assert "but <http://example.org/weather/temperatures> is required" in said
    assert "exact    no" in said


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (("--range", ":router1=5"), "this is not a range"),
        (("--range", ":router1=-1,5"), "cannot be from -1.0 to 5.0"),
        (("--range", ":router7=0,5"), "no query collects attributes from stream"),
        (("--operator", "general", "--max-instances", "50"), "no query has instances to bound"),
        (("--operator", "mintopk"), "the operator mintopk cannot run this query"),
    ],
)
def test_what_makes_no_sense_is_refused(options, wrong):
    assert wrong in explained(PROJECT / "queries" / "flows.rspql", *options)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", NAMES if TIMES > 1 else NAMES[:1])
def test_answers_are_the_same_on_spark(name, request, monkeypatch):
    asked = request.getfixturevalue(name)
    expected = answers(asked)
    assert expected
    monkeypatch.setenv("RSP_RUNNER", "spark")
    assert answers(asked) == expected
