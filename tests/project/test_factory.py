"""The factory: a short run of it, from its start to its end."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from datetime import UTC, date, datetime

import pytest

from tests.data import PROJECT
from tests.io.live.servers import needs_mosquitto

RUN = [sys.executable, "examples/factory/run.py"]


@needs_mosquitto
def test_the_factory_ranks_products_and_ends_by_itself(tmp_path):
    picture = tmp_path / "ranking.svg"
    done = subprocess.run(  # noqa: S603 - our own
        [*RUN, "--seconds", "8", "--picture", str(picture)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    told = re.search(r"(\d+) readings, (\d+) windows", done.stdout)
    assert told is not None
    readings, windows = map(int, told.groups())
    assert readings >= 24 * 5, "the sensors were heard"
    assert windows >= 2
    pattern = r"^  (\d)\. (\S+) .* (\S+) mm/s   maintained (\S+)   risk +(-?[0-9.]+) "
    ranked = re.findall(pattern, done.stdout, re.MULTILINE)
    assert [int(rank) for rank, *_ in ranked] == [1, 2, 3, 4, 5] * windows
    risks = [float(risk) for *_, risk in ranked]
    assert min(risks) > 0
    today = datetime.now(UTC).date()
    assert all(date.fromisoformat(day) <= today for *_, day, _ in ranked)
    for start in range(0, len(risks), 5):
        window = risks[start : start + 5]
        assert window == sorted(window, reverse=True)
    assert ranked[-1][1] in picture.read_text(encoding="utf-8")


@pytest.mark.parametrize("seconds", [0.5, 60, 1000])
def test_nothing_is_maintained_in_the_future_and_nothing_shakes_less_than_not_at_all(seconds):
    plant = runpy.run_path(str(PROJECT / "examples" / "factory" / "plant.py"))
    history = plant["history"](seconds)
    assert min(each.days_ago for each in history) >= 0
    today = date(2026, 3, 1)
    assert max(each.date(today) for each in history) <= today
    first, later = history[: plant["MACHINES"]], history[plant["MACHINES"] :]
    assert min(each.days_ago for each in first) >= max((e.days_ago for e in later), default=0)
    shaking = [plant["vibration"](m, s / 2) for m in range(plant["MACHINES"]) for s in range(400)]
    assert min(shaking) > 0


def test_without_a_broker_it_says_how_to_get_one(tmp_path):
    """Nothing is found on an empty path, nor in a folder of programs that is replaced."""
    program = (
        "import shutil, sys; shutil.which = lambda *_, **__: None;"
        " sys.path.insert(0, 'examples/factory'); import run; run.main()"
    )
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "sudo apt-get install mosquitto" in done.stderr
