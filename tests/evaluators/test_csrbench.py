"""CSRBench: the answers of Q1, Q2 and Q5, recomputed by others with Oxigraph."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from rsp_engine.cli import app
from tests.data import real_data

STREAM = "http://example.org/observations"


def answers(tmp_path, size: str) -> list[tuple[int, int, list[str]]]:
    """Return the windows with rows: open and close in seconds, and sensor@time of each row."""
    text = f"""
        PREFIX om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
        PREFIX weather: <http://knoesis.wright.edu/ssw/ont/weather.owl#>
        SELECT ?sensor ?obs
        FROM NAMED WINDOW <urn:w> ON STREAM <{STREAM}> [{size}]
        WHERE {{
          WINDOW <urn:w> {{
            ?obs om-owl:observedProperty weather:_AirTemperature ;
                 om-owl:procedure ?sensor ;
                 om-owl:result ?res .
            ?res om-owl:floatValue ?value .
            FILTER (?value > 80)
          }}
        }}"""
    query = tmp_path / "query.rspql"
    query.write_text(text)
    source = f"{STREAM}={real_data('csrbench/data')}?unit=s"
    command = ["run", str(query), "--stream", source, "--bounds", "[)"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    found = []
    for line in map(json.loads, result.stdout.splitlines()):
        window = line["window"]
        rows = [short(row["bindings"]["obs"]["value"]) for row in line["rows"]]
        if rows:
            found.append((window["open"] // 1000, window["close"] // 1000, sorted(rows)))
    return found


def short(observation: str) -> str:
    """`.../Observation_AirTemperature_C1192_2004_08_08_07_05_00` is C1192@07:05."""
    sensor, *_, hours, minutes, _ = observation.split("AirTemperature_")[1].split("_")
    return f"{sensor}@{hours}:{minutes}"


def test_q1_tumbles_over_ten_seconds(tmp_path):
    assert answers(tmp_path, "RANGE 10s STEP 10s") == [
        (10, 20, ["C0837@07:15", "C0837@07:30", "C1192@07:05", "C1192@07:20", "C1192@07:35"]),
        (20, 30, [
            "C0837@07:45", "C0837@08:00", "C0837@08:15", "C0837@08:30", "C1192@07:50",
            "C1192@08:05", "C1192@08:20",
        ]),
        (30, 40, ["C0837@08:45", "C1192@08:35", "C1192@08:50"]),
    ]  # fmt: skip


def test_q2_tumbles_over_a_second(tmp_path):
    found = answers(tmp_path, "RANGE 1s STEP 1s")
    assert [opened for opened, _, _ in found] == [
        12, 14, 15, 17, 18, 20, 21, 23, 24, 26, 27, 29, 30, 32, 33,
    ]  # fmt: skip
    assert all(len(rows) == 1 for _, _, rows in found)


def test_q5_slides_over_five_seconds(tmp_path):
    found = answers(tmp_path, "RANGE 5s STEP 1s")
    assert len(found) == 26
    assert sum(len(rows) for _, _, rows in found) == 75
    assert found[0] == (8, 13, ["C1192@07:05"])
    assert found[-1] == (33, 38, ["C1192@08:50"])
