"""Watched folders: every file counts once, whatever happens to the run."""

from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rsp_engine.engine import Engine
from rsp_engine.errors import SourceError
from rsp_engine.io.sources import open_source
from rsp_engine.model.answers import Solutions
from tests.io.live.engine_thread import EX, until

if TYPE_CHECKING:
    from pathlib import Path

QUERY = f"""PREFIX : <{EX}>
REGISTER RSTREAM :q AS SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON STREAM :a [RANGE 1s STEP 1s]
WHERE {{ WINDOW :w {{ ?s :v ?v }} }}"""


def put(folder: Path, number: int) -> None:
    """Move a file of one element per second into the folder."""
    line = f"<{EX}s{number}> <{EX}v> <{EX}v{number}> <{EX}g/{1_000 * number + 500}> .\n"
    (folder / f"{number:04}.nq.tmp").write_text(line)
    (folder / f"{number:04}.nq.tmp").rename(folder / f"{number:04}.nq")


def engine(folder: Path, **options: Any) -> Engine:
    made = Engine(**options)
    made.register(QUERY)
    made.bind(f"{EX}a", f"watch://{folder}?format=nquads")
    return made


def counted(made: Engine, answers: list[int]) -> threading.Thread:
    """Collect the counts of answers in another thread, as windows close."""

    def take() -> None:
        for answer in made.run():
            assert isinstance(answer.content, Solutions)
            [row] = answer.content.rows
            answers.append(int(row.bindings["n"].value))

    thread = threading.Thread(target=take)
    thread.start()
    return thread


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "in"
    made.mkdir()
    return made


def test_files_that_are_there_and_files_that_come_are_taken_in_order(folder):
    for number in (3, 1, 2):
        put(folder, number)
    (folder / "9999.nq.part").write_text("not yet")
    (folder / ".hidden").write_text("not at all")
    answers: list[int] = []
    made = engine(folder)
    running = counted(made, answers)
    until(lambda: len(answers) == 2)  # the third window waits for what comes after it
    put(folder, 4)
    put(folder, 5)
    until(lambda: len(answers) == 4)
    made.stop()
    running.join(30)
    assert answers == [1] * 5
    assert made.counts.elements == 5


def test_a_run_goes_on_with_the_files_that_it_has_not_taken(folder, tmp_path):
    answers: list[int] = []
    for numbers in ((1, 2, 3), (4, 5), (6,)):
        for number in numbers:
            put(folder, number)
        made = engine(folder, checkpoint=tmp_path / "state")
        running = counted(made, answers)
        until(lambda: len(answers) == max(numbers) - 1)  # noqa: B023 - it is asked at once
        made.stop()
        running.join(30)
    assert answers == [1] * 5, "each once; the last window is open"


def test_a_missing_spool_is_refused(folder, tmp_path):
    """New messages would be written before the offset of the checkpoint, and never be read."""
    for number in (1, 2, 3):
        put(folder, number)
    answers: list[int] = []
    made = engine(folder, checkpoint=tmp_path / "state")
    running = counted(made, answers)
    until(lambda: len(answers) == 2)
    made.stop()
    running.join(30)
    shutil.rmtree(tmp_path / "state" / "spool")
    for path in folder.iterdir():
        path.unlink()
    put(folder, 4)
    with pytest.raises(SourceError, match="its spool ends at"):
        next(engine(folder, checkpoint=tmp_path / "state").run())


def test_a_file_name_out_of_order_is_reported(folder, caplog):
    put(folder, 5)
    made = engine(folder)
    running = counted(made, [])
    until(lambda: made.counts.elements == 1)
    put(folder, 4)
    until(lambda: any("0004.nq is left out" in line for line in caplog.messages))
    made.stop()
    running.join(30)
    assert made.counts.elements == 1


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SourceError, match="there is no such folder"):
        open_source(f"watch://{tmp_path / 'nowhere'}")
