"""Commits: what is noted, what is written together, and what comes of it after a crash."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyoxigraph import Literal

from rsp_engine.errors import DriverError, StateError
from rsp_engine.replica.endpoint import Fetched, Limits
from rsp_engine.replica.recording import Recording
from rsp_engine.runtime.checkpoint import Checkpoint
from rsp_engine.runtime.commits import Commits, Kept
from rsp_engine.runtime.sources.cuts import Place

KEY = (Literal("a"),)


class Run:
    """A run that counts, over one live source."""

    def __init__(self) -> None:
        self.count = 0
        self.released: list[dict[int, int]] = []

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, state: dict[str, Any], planned: dict[int, Place]) -> None:
        self.count = state["count"]

    def needed(self, planned: dict[int, Place]) -> dict[int, int]:
        return {number: place.end or 0 for number, place in planned.items()}

    def release(self, needed: dict[int, int]) -> None:
        self.released.append(dict(needed))


class Lines:
    """An output."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.went_back: list[Any] = []

    def position(self) -> int:
        return len(self.lines)

    def go_back(self, position: Any) -> None:
        self.went_back.append(position)


class Counting:
    """An endpoint that gives another value each time."""

    def __init__(self) -> None:
        self.asked = 0

    def fetch(self, keys: Any, limits: Limits, now: int) -> Fetched:
        self.asked += 1
        return Fetched({key: ({"f": Literal(self.asked)},) for key in keys}, 1)

    def snapshot(self, limits: Limits, now: int) -> Fetched:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Story:
    """A run with one output and one service, which may be taken up again."""

    def __init__(self, folder: Any) -> None:
        self.run, self.lines, self.remote = Run(), Lines(), Counting()
        self.service = Recording(self.remote)
        where = None if folder is None else str(folder)
        kept = Kept(where, {"queries": ["a"]}, [self.service], [self.lines])
        self.commits = Commits(self.run, kept)  # type: ignore[arg-type]

    def restored(self, *, is_strict: bool = True) -> Story:
        self.commits.restore(is_strict=is_strict)
        return self

    def ask(self, now: int) -> str:
        [[solution]] = self.service.fetch([KEY], Limits(), now).answers.values()
        self.commits.note()
        return str(solution["f"].value)

    def again(self, folder: Any) -> Story:
        """Return the same run, taken up by another process."""
        self.commits.close()
        return Story(folder).restored()

    def take(self, until: int) -> None:
        """Read a place, and write a line that comes of it."""
        self.run.count += 1
        self.commits.planned[0] = Place(0, until)
        self.lines.lines.append(f"until {until}")


def content(path: Any) -> Any:
    return json.loads(path.read_text(encoding="utf-8").partition("\n")[2])


def test_a_commit_holds_the_state_the_places_and_the_positions_together(tmp_path):
    story = Story(tmp_path).restored()
    assert story.lines.went_back == [None], "there is nothing to go back to"
    story.take(10)
    story.commits.commit()
    expected = {"run": {"count": 1}, "planned": {"0": [0, 10, 1]}, "outputs": [1]}
    assert content(tmp_path / "state" / "0.json") == expected
    again = story.again(tmp_path)
    assert (again.commits.last, again.commits.planned) == (0, {0: Place(0, 10)})
    assert again.run.count == 1
    assert again.lines.went_back == [1]


def test_what_was_noted_is_not_asked_again(tmp_path):
    first = Story(tmp_path).restored()
    first.take(10)
    first.commits.commit()
    assert [first.ask(20), first.ask(30)] == ["1", "2"]
    assert len(content(tmp_path / "fetched" / "1.json")["calls"][0]) == 2
    again = first.again(tmp_path)
    assert [again.ask(20), again.ask(30), again.ask(40)] == ["1", "2", "1"]
    assert again.remote.asked == 1


def test_what_belongs_to_a_commit_is_not_replayed_after_it(tmp_path):
    first = Story(tmp_path).restored()
    first.ask(20)
    first.commits.commit()
    again = first.again(tmp_path)
    again.ask(30)
    assert again.remote.asked == 1


def test_another_question_is_refused_where_the_batch_is_the_same(tmp_path):
    Story(tmp_path).restored().ask(20)
    with pytest.raises(StateError, match="another run"):
        Story(tmp_path).restored().ask(25)
    assert Story(tmp_path).restored(is_strict=False).ask(25) == "1"


def test_a_commit_that_cannot_be_written_is_made_later(tmp_path, monkeypatch):
    story = Story(tmp_path).restored()
    story.take(10)
    story.ask(20)

    def full(*_: object) -> None:
        raise DriverError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write_state", full)
        with pytest.raises(DriverError):
            story.commits.commit()
    assert story.commits.last == -1
    story.ask(30)
    story.commits.commit()
    assert story.commits.last == 0
    assert len(content(tmp_path / "fetched" / "0.json")["calls"][0]) == 2


def test_sources_keep_what_the_state_before_the_last_one_needs(tmp_path):
    story = Story(tmp_path).restored()
    for until in (10, 20, 30):
        story.take(until)
        story.commits.commit()
    assert story.run.released == [{}, {0: 10}, {0: 20}]


def test_without_a_folder_nothing_is_written_and_sources_forget_at_once():
    story = Story(None).restored()
    assert story.commits.folder is None
    story.take(10)
    story.ask(20)
    story.commits.commit()
    assert story.run.released == [{0: 10}]
    assert story.commits.last == 0
