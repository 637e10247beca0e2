"""Suites: the bundled files, and errors that name the key at fault."""

from __future__ import annotations

import pytest

from rsp_engine.errors import SuiteError
from rsp_engine.experiments.bundled_suites import find_suite, known_suites
from rsp_engine.experiments.suite import NINE, read_suite
from rsp_engine.experiments.tasks import tasks_of
from tests.data import PROJECT

GOOD = """
title = "Mine"
varied = "budget"
[data]
seed = 3
[[grid]]
name = "one"
policies = ["AT-TSM", "WST"]
ch = [20]
budget = [1, 7]
k = [5]
n = [10]
quick = { budget = [7] }
[quick]
datasets = 2
windows = 30
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_grids_are_those_of_the_paper():
    """Tables 4 and 5; where the text says something else, both."""
    grids = {
        (path.stem, grid.name): (grid.ch, grid.budget, grid.k, grid.n)
        for path in known_suites()
        for grid in read_suite(path).grids
        if path.stem.startswith(("preliminary", "experiment"))
    }
    budgets, both = (1, 3, 5, 7, 10, 15, 20, 25, 30), (7, 15)
    assert grids == {
        ("preliminary", "text"): ((20,), (7,), (5,), (10,)),
        ("preliminary", "Table 5"): ((20,), (7,), (5,), (20,)),
        ("experiment-1", "text"): ((20,), (1, 3, 7, 10, 15, 20, 25), (5,), (10,)),
        ("experiment-1", "Table 5"): ((10,), budgets, (5,), (10,)),
        ("experiment-2", "Table 5"): ((5, 10, 20, 40, 80), (7,), (5,), (10,)),
        ("experiment-3", "Table 5"): ((10,), both, (5, 7, 10, 15, 20, 30), (10,)),
        ("experiment-4", "Table 5"): ((10,), both, (5,), (0, 10, 20, 30, 40)),
    }


@pytest.mark.parametrize("path", known_suites(), ids=lambda path: path.stem)
def test_a_suite_of_the_project_can_be_run_quickly_too(path):
    suite, quick = read_suite(path), read_suite(path, quick=True)
    assert 0 < quick.runs < suite.runs
    assert sum(len(task.settings) for task in tasks_of(suite)) == suite.runs
    parts = [task.part for task in tasks_of(suite)]
    assert len(set(parts)) == len(parts)
    if path.stem.startswith("experiment"):
        assert suite.data.datasets == 5
        assert all(len(grid.policies) == 9 for grid in suite.grids)


def test_a_suite_is_found_by_name_or_by_path():
    assert find_suite("experiment-1") == PROJECT / "examples" / "experiments" / "experiment-1.toml"
    assert str(find_suite("elsewhere/mine.toml")) == "elsewhere/mine.toml"
    with pytest.raises(SuiteError, match="there is no suite experiment-9") as found:
        find_suite("experiment-9")
    assert "experiment-1" in (found.value.hint or "")


def test_quick_takes_its_own_values_and_leaves_the_others(written):
    path = written(GOOD)
    suite, quick = read_suite(path), read_suite(path, quick=True)
    assert (suite.name, suite.data.datasets, suite.data.windows) == ("mine", 5, 150)
    assert (quick.data.datasets, quick.data.windows, quick.data.seed) == (2, 30, 3)
    assert (suite.grids[0].budget, quick.grids[0].budget) == ((1, 7), (7,))
    assert quick.grids[0].policies == ("AT-TSM", "WST")


def test_policies_that_are_left_out_are_the_nine_of_the_paper(written):
    [grid] = read_suite(written(GOOD.replace('policies = ["AT-TSM", "WST"]\n', ""))).grids
    assert grid.policies == NINE
    assert len(NINE) == 9


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 3", "sed = 3", r"mine.toml: data: sed: there is no such key"),
        ("seed = 3", "seed = -1", r"data: seed: must be a whole number from 0 on, not -1"),
        ("seed = 3", "seed = true", r"data: seed: must be a whole number from 0 on, not True"),
        ("seed = 3", "windows = 151", r"data: windows: must be a whole number from 1 to 150"),
        ("seed = 3", 'source = "twitter"', r"data: source: must be one of generated, recorded"),
        ("seed = 3", 'source = "recorded"', r"data: folder: recorded traces have a folder"),
        ("seed = 3", 'folder = "here"', r"data: folder: it is for recorded data"),
        ("seed = 3", 'counting = "all"', r"data: counting: must be one of slides, mentions"),
        ('"AT-TSM"', '"AT-TMS"', r"grid 1: policies: there is no policy 'AT-TMS'"),
        ('"AT-TSM", "WST"', "", r"grid 1: policies: is empty"),
        ('"AT-TSM", "WST"', '"WST", "WST"', r"grid 1: policies: holds a value twice"),
        ("ch = [20]", "ch = []", r"grid 1: ch: is empty, so there is nothing to run"),
        ("ch = [20]", "ch = [81]", r"grid 1: ch: must be a whole number from 1 to 80, not 81"),
        ("ch = [20]", "", r"grid 1: ch: is missing"),
        ("budget = [1, 7]", "budget = [-3]", r"grid 1: budget: must be .* from 0 on, not -3"),
        ("budget = [1, 7]", "budget = 7", r"grid 1: budget: must be a list, not 7"),
        ("k = [5]", "k = [0]", r"grid 1: k: must be a whole number from 1 on, not 0"),
        ("n = [10]", "n = [1.5]", r"grid 1: n: must be a whole number from 0 on, not 1.5"),
        ("{ budget = [7] }", "{ budgte = [7] }", r"grid 1: quick: budgte: there is no such key"),
        ('name = "one"', 'name = ""', r"grid 1: name: must be a text"),
        (
            'varied = "budget"',
            'varied = "b"',
            r"varied: must be one of ch, budget, k, n, queries, not 'b'",
        ),
        ('title = "Mine"', "", r"title: is missing"),
        ("windows = 30", "window = 30", r"quick: window: there is no such key"),
        ('title = "Mine"', "title =", r"is no TOML file"),
    ],
)
def test_what_is_wrong_is_refused_by_its_key(written, old, new, message):
    assert old in GOOD
    with pytest.raises(SuiteError, match=message):
        read_suite(written(GOOD.replace(old, new, 1)))


def test_what_is_wrong_in_the_quick_values_is_refused_when_they_are_taken(written):
    path = written(GOOD.replace("{ budget = [7] }", "{ budget = [] }"))
    with pytest.raises(SuiteError, match="grid 1: quick: budget: is empty"):
        read_suite(path, quick=True)


def test_a_slip_gets_a_hint(written):
    with pytest.raises(SuiteError) as found:
        read_suite(written(GOOD.replace("AT-TSM", "AT-TMS")))
    assert found.value.hint == "did you mean AT-TSM?"


def test_grids_without_end_or_of_one_name_are_refused(written):
    head, _, rest = GOOD.partition("[[grid]]")
    with pytest.raises(SuiteError, match="grid: there is none"):
        read_suite(written(head))
    again = rest.split("[quick]", maxsplit=1)[0].replace('"one"', '"ONE"')
    with pytest.raises(SuiteError, match="two grids have the same name"):
        read_suite(written(f"{GOOD}[[grid]]{again}"))


def test_every_dataset_has_chance_of_its_own(written):
    """Else RND would do much the same in all of them, and so would another seed."""
    suite = read_suite(written(GOOD))
    seeds = {task.number: {s.seed for s in task.settings} for task in tasks_of(suite)}
    assert all(len(found) == 1 for found in seeds.values())
    assert len({min(found) for found in seeds.values()}) == suite.data.datasets
    other = tasks_of(read_suite(written(GOOD.replace("seed = 3", "seed = 4"))))
    assert not {s.seed for t in other for s in t.settings} & set().union(*seeds.values())


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SuiteError, match="cannot be read"):
        read_suite(tmp_path / "none.toml")
