"""Commits: the notes, what is committed together, and what is restored after a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyoxigraph import Literal

from rsp_engine.drivers.checkpoint.commits import BatchPlan, CheckpointSpec, Commits
from rsp_engine.drivers.checkpoint.store import Checkpoint
from rsp_engine.errors import DriverError, StateError
from rsp_engine.io.sources.splits import Split
from rsp_engine.replica.endpoints.endpoint import FetchResult, Limits
from rsp_engine.replica.endpoints.recording import RecordingEndpoint

if TYPE_CHECKING:
    from rsp_engine.drivers.checkpoint.logged_state import LoggedState

KEY = (Literal("a"),)


class Run:
    """A run that counts, over one live source."""

    def __init__(self) -> None:
        self.count = 0
        self.released: list[dict[int, int]] = []

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, state: dict[str, Any], planned: dict[int, Split]) -> None:
        self.count = state["count"]

    def needed(self, planned: dict[int, Split]) -> dict[int, int]:
        return {number: split.end or 0 for number, split in planned.items()}

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

    def fetch(self, keys: Any, limits: Limits, now: int) -> FetchResult:
        self.asked += 1
        return FetchResult({key: ({"f": Literal(self.asked)},) for key in keys}, 1)

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Story:
    """A run with one output and one service, which can be resumed."""

    def __init__(self, folder: Any) -> None:
        self.run, self.lines, self.remote = Run(), Lines(), Counting()
        self.service = RecordingEndpoint(self.remote)
        where = None if folder is None else str(folder)
        spec = CheckpointSpec(where, {"queries": ["a"]}, [self.service], [self.lines])
        self.commits = Commits(self.run, spec)  # type: ignore[arg-type]

    def restored(self, *, is_strict: bool = True) -> Story:
        self.commits.restore(is_strict=is_strict)
        return self

    def ask(self, now: int) -> str:
        [[solution]] = self.service.fetch([KEY], Limits(), now).answers.values()
        self.commits.note()
        return str(solution["f"].value)

    def again(self, folder: Any) -> Story:
        """Return the same run, resumed by another process."""
        self.commits.close()
        return Story(folder).restored()

    def take(self, until: int) -> None:
        """Read a split, and write a line."""
        self.run.count += 1
        self.commits.planned[0] = Split(0, until)
        self.lines.lines.append(f"until {until}")


def saved(story: Story, folder: Any) -> LoggedState:
    """Return what another process restores."""
    story.commits.close()
    checkpoint = Checkpoint(folder, {"queries": ["a"]})
    found = checkpoint.last()
    checkpoint.close()
    return found


def test_a_commit_holds_the_state_the_splits_and_the_positions_together(tmp_path):
    story = Story(tmp_path).restored()
    assert story.lines.went_back == [None], "there is nothing to go back to"
    story.take(10)
    story.commits.commit()
    expected = {"run": {"count": 1}, "planned": {"0": [0, 10]}, "outputs": [1]}
    assert saved(story, tmp_path) == (0, expected, ())
    again = story.again(tmp_path)
    assert (again.commits.last, again.commits.planned) == (0, {0: Split(0, 10)})
    assert again.run.count == 1
    assert again.lines.went_back == [1]


def test_what_was_noted_is_not_asked_again(tmp_path):
    first = Story(tmp_path).restored()
    first.take(10)
    first.commits.commit()
    assert [first.ask(20), first.ask(30)] == ["1", "2"]
    assert [len(note["calls"]) for note in saved(first, tmp_path).notes] == [1, 1]
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
    story = Story(tmp_path).restored()
    story.ask(20)
    story = story.again(tmp_path)
    with pytest.raises(StateError, match="another run"):
        story.ask(25)
    story.commits.close()
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
    assert saved(story, tmp_path).batch == 0


def test_sources_forget_what_the_last_state_does_not_need_also_when_it_is_restored(tmp_path):
    """Otherwise a blocked sender would wait for a commit that needs its own message."""
    story = Story(tmp_path).restored()
    for until in (10, 20):
        story.take(until)
        story.commits.commit()
    assert story.run.released == [{0: 10}, {0: 20}]
    assert story.again(tmp_path).run.released == [{0: 20}]


def test_what_a_batch_reads_is_the_same_when_it_is_run_again(tmp_path):
    story = Story(tmp_path).restored()
    story.commits.commit()
    plan = BatchPlan([(0, Split(10, 20)), (1, Split(0, None))], [2])
    story.commits.plan(plan)
    again = story.again(tmp_path)
    assert again.commits.broken == plan
    again.commits.commit()
    assert again.again(tmp_path).commits.broken is None


def test_a_note_is_as_large_as_what_is_new(tmp_path):
    story = Story(tmp_path).restored()
    sizes = []
    for now in range(200):
        before = size_of(tmp_path)
        story.ask(now)
        sizes.append(size_of(tmp_path) - before)
    assert max(sizes) < 1.2 * min(sizes)


def test_a_replay_writes_nothing_that_is_written(tmp_path):
    story = Story(tmp_path).restored()
    for now in range(20):
        story.ask(now)
    again = story.again(tmp_path)
    before = size_of(tmp_path)
    for now in range(20):
        again.ask(now)
    assert size_of(tmp_path) == before
    assert again.remote.asked == 0


def test_what_follows_another_question_is_not_replayed(tmp_path):
    first = Story(tmp_path).restored()
    for now in (10, 20, 30):
        first.ask(now)
    first.commits.close()
    second = Story(tmp_path).restored(is_strict=False)
    assert [second.ask(10), second.ask(25)] == ["1", "1"]
    again = second.again(tmp_path)
    assert [again.ask(10), again.ask(25), again.ask(30)] == ["1", "1", "1"]
    assert again.remote.asked == 1


def size_of(folder: Any) -> int:
    return sum(path.stat().st_size for path in (folder / "commits").iterdir())


def test_without_a_folder_nothing_is_written_and_sources_forget_at_once():
    story = Story(None).restored()
    assert story.commits.folder is None
    story.take(10)
    story.ask(20)
    story.commits.commit()
    assert story.run.released == [{0: 10}]
    assert story.commits.last == 0
