"""Runs over splits: whatever the splits are, the answers are those of single elements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.drivers.local import LocalDriver
from rsp_engine.evaluators.step import Step
from rsp_engine.grammar import check
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.splits import Lined, Splittable
from rsp_engine.model.answers import Answer
from rsp_engine.model.streams import DeadLetter, Element
from rsp_engine.plan.planner import plan
from tests.drivers import test_batches as batches
from tests.drivers.split_runs import RemakeableRun, SplitTestDriver, in_splits
from tests.evaluators.test_semantics import CASES, name_of
from tests.evaluators.test_semantics import check as check_case
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.plan.options import QueryOptions
    from tests.drivers.split_runs import Shared

EX = batches.EX


@pytest.mark.parametrize("path", CASES, ids=name_of)
def test_every_case_of_the_semantics_holds_in_splits(path, tmp_path):
    with in_splits():
        check_case(path, tmp_path)


@pytest.mark.parametrize("path", CASES, ids=name_of)
def test_every_case_of_the_semantics_can_be_cut_between_splits(path, tmp_path):
    with in_splits(cuts=range(1000)):
        check_case(path, tmp_path)


def check_splits(
    asked: list[str],
    chosen: QueryOptions,
    texts: list[str],
    max_delay: int,
    *,
    shared: Shared | None = None,
    **how: object,
) -> None:
    """Run queries over files of N-Quads, element by element and in splits, and compare."""
    with TemporaryDirectory() as folder:
        runs: list[object] = []
        names = [str(Path(folder) / f"{number}.nq") for number in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            Path(name).write_text(text, encoding="utf-8")
        for are_split in (False, True):
            steps = [Step(plan(check(text), text, "<query>", chosen).physical) for text in asked]
            happened: list[object] = []
            sources = {f"{EX}s": list(map(open_source, names))}
            run = RemakeableRun(
                steps,
                sources,
                happened.append,
                max_delay,
                are_split=are_split,
                shared=shared if are_split else None,
            )
            driver = SplitTestDriver(run, **how) if are_split else LocalDriver(run)  # type: ignore[arg-type]
            happened.extend(driver.run())
            if shared is not None:  # answers wait; dead letters have an output of their own
                happened.sort(key=lambda each: isinstance(each, Answer))
            runs.append((happened, driver.counts))
        assert isinstance(driver, SplitTestDriver)
        fine = sum(reduced.trouble is None for _, _, reduced in driver.splits)
        event(f"{'some' if fine else 'no'} splits are reduced")
    assert runs[1] == runs[0]


sizes = st.sampled_from((1, 50, 200, 1000, 100_000))
manners = st.fixed_dictionaries(
    {"size": sizes, "count": st.integers(1, 3), "cuts": st.sampled_from(((), range(1000)))}
)


@examples(60)
@given(st.data(), batches.options, batches.texts(), st.integers(0, 12), manners)
def test_splits_change_nothing(data, chosen, lines, max_delay, how):
    number = data.draw(st.integers(1, 2))
    asked = [data.draw(batches.queries(index)) for index in range(number)]
    check_splits(asked, chosen, ["".join(lines)], max_delay, **how)


@examples(40)
@given(
    st.data(),
    batches.options,
    st.lists(batches.texts(), min_size=2, max_size=3),
    st.integers(0, 12),
    manners,
)
def test_several_files_of_a_stream_are_merged(data, chosen, files, max_delay, how):
    number = data.draw(st.integers(1, 2))
    asked = [data.draw(batches.queries(index)) for index in range(number)]
    check_splits(asked, chosen, ["".join(lines) for lines in files], max_delay, **how)


@examples(40)
@given(batches.texts(), sizes)
def test_the_splits_of_a_file_hold_what_the_file_holds(lines, size):
    with TemporaryDirectory() as folder:
        name = str(Path(folder) / "a.nq")
        Path(name).write_text("".join(lines), encoding="utf-8")
        source = open_source(name)
        assert isinstance(source, Splittable)
        assert isinstance(source, Lined)
        splits = list(source.cut(size))
        parts = [source.part(split) for split in splits]
        found = []
        for split, part in zip(splits, parts, strict=True):
            before = source.lines_before(split)
            found += [_moved(item, before) for item in part]
        if not any(part.leans_on_others for part in parts):
            assert found == list(source)


def _moved(item: Element | DeadLetter, lines: int) -> Element | DeadLetter:
    position = lines + item.position
    if isinstance(item, Element):
        return item._replace(position=position)
    return replace(item, position=position)
