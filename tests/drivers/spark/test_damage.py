"""A damaged checkpoint on Spark: the same bytes, or a refusal, and never a run that hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.drivers.cut import texts
from tests.drivers.damage import DAMAGES, broken_off, files, keep, outcome, put_back
from tests.drivers.spark.recovering import made, write_stream
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from pathlib import Path

    from rsp_engine.engine import Engine

USUAL = ("torn", "halved")
SECONDS = 60
"""Seconds: a refusal is immediate, but a run that resumes may take long on a busy machine."""


def kept(folder: Path) -> Engine:
    return made(folder, folder / "checkpoint")


@pytest.fixture(scope="module")
def whole(spark, tmp_path_factory) -> tuple[Path, str]:
    """Return a folder with a run that broke off in a batch, and what it would have written."""
    folder = tmp_path_factory.mktemp("whole")
    write_stream(folder / "stream.nq")
    broken_off(kept(folder), folder, 30)
    keep(folder)
    return folder, "".join(texts(made(folder, None)))


@pytest.mark.parametrize("damage", DAMAGES if TIMES > 1 else USUAL)
def test_a_damaged_checkpoint_gives_the_same_bytes_or_is_refused(whole, damage):
    folder, expected = whole
    put_back(folder)
    for path in files(folder):
        if TIMES == 1 and path.suffix != ".log":
            continue
        put_back(folder)
        DAMAGES[damage](path)
        found = outcome(lambda: kept(folder), folder, SECONDS)
        assert found == expected or found.startswith("refused: ")


@pytest.mark.parametrize("batch", [0, 7, 10_000] if TIMES > 1 else [7])
def test_a_log_of_spark_that_says_something_else_does_not_count(whole, batch):
    """The checkpoint has no files of Spark: what is in a folder of that name is ignored."""
    folder, expected = whole
    put_back(folder)
    for name in ("offsets", "commits"):
        (folder / "checkpoint" / "spark" / name).mkdir(parents=True)
        (folder / "checkpoint" / "spark" / name / str(batch)).write_text("v1\n{}")
    assert outcome(lambda: kept(folder), folder, SECONDS) == expected
    left = sorted(path.name for path in (folder / "checkpoint").iterdir())
    assert left == ["commits", "lock", "run.json", "spark"]
