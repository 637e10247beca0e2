"""Whatever is damaged in a checkpoint: the same bytes, or a refusal; never another answer."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.drivers.cut import texts
from tests.drivers.damage import DAMAGES, broken_off, files, keep, outcome, put_back
from tests.drivers.spark.recovering import made, write_stream
from tests.drivers.test_local_checkpoints import kept
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from pathlib import Path

USUAL = ("removed", "torn", "flipped at 0.7", "without a line at 0.95")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, str]:
    """Return a folder with a run that broke off, and what it would have written."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rsp_engine.drivers.local._COMMIT_S", 0)
        write_stream(folder / "stream.nq")
        broken_off(kept(folder), folder, 40)
        keep(folder)
    return folder, "".join(texts(made(folder, None)))


@pytest.mark.parametrize("damage", DAMAGES if TIMES > 1 else USUAL)
def test_a_damaged_checkpoint_gives_the_same_bytes_or_is_refused(whole, damage):
    folder, expected = whole
    put_back(folder)
    damaged = files(folder)
    assert len(damaged) == 3, "the log, the lock, and whose it is"
    for path in damaged:
        put_back(folder)
        DAMAGES[damage](path)
        found = outcome(lambda: kept(folder), folder, 10)
        assert found == expected or found.startswith("refused: ")


@pytest.mark.parametrize("name", ["commits", "commits/*.log"])
def test_a_checkpoint_without_its_log_is_refused(whole, name):
    folder, _ = whole
    put_back(folder)
    for path in (folder / "checkpoint").glob(name):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert "contains no state" in outcome(lambda: kept(folder), folder, 10)


def test_a_run_that_broke_off_goes_on(whole):
    folder, expected = whole
    put_back(folder)
    assert outcome(lambda: kept(folder), folder, 10) == expected
