"""Policies of the user's own files: how they are named, found and refused."""

from __future__ import annotations

import pytest

from rsp_engine.errors import BindingError, SuiteError
from rsp_engine.experiments.policy_run import variant
from rsp_engine.experiments.suite import read_suite
from rsp_engine.policies import elected_set, policy_named
from rsp_engine.policies.policy_file import POLICY_TEMPLATE
from tests.policies.inputs import candidates, entries

OWN = """
from dataclasses import dataclass
from rsp_engine.policies import POLICIES, RankedPolicy
from rsp_engine.policies.lru import lru

@dataclass(frozen=True)
class Last:
    name: str = "LAST"
    summary: str = "the last of the window"
    section: str = "none"
    proposer: str = "window"
    is_bounded: bool = True

    def elect(self, candidates, entries, budget, now, seed):
        return candidates.keys[::-1][:budget]

LAST = Last()
OLDEST = RankedPolicy("OLDEST", "as LRU", "none", "list", lru)
USUAL = POLICIES["AT-TSM"]
NUMBER = 7
"""


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return file


def test_a_policy_of_a_file_is_as_good_as_one_of_the_engine(own):
    policy = policy_named(f"{own}:LAST")
    asked = candidates([3, 1, 2], [9, 8, 7], [1, 1, 1])
    assert elected_set(policy, asked, entries(3), 2, 0, 0).tolist() == [2, 1]
    assert policy_named(f"{own}:LAST") is policy, "the file is run once"
    assert policy_named(f"{own}:OLDEST").proposer == "list"


def test_a_relative_path_is_of_the_current_folder(own, monkeypatch):
    monkeypatch.chdir(own.parent)
    assert policy_named("own.py:LAST") == policy_named(f"{own}:LAST")


def test_the_template_is_a_policy(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(POLICY_TEMPLATE.replace("{file}", "mine.py"))
    policy = policy_named(f"{file}:MY_POLICY")
    asked = candidates([3, 1, 2], [9, 8, 7], [1, 1, 1])
    facts = entries(3, last_refresh=[9, 2, 0])  # ages 1, 8 and 10, at places 1, 2 and 3
    assert elected_set(policy, asked, facts, 3, 10, 0).tolist() == [1, 2, 3]
    assert policy.section


@pytest.mark.parametrize(
    ("name", "reason", "hint"),
    [
        ("own.py:LASTS", "own.py has no policy LASTS", "it has LAST, OLDEST, USUAL"),
        (
            "own.py:NUMBER",
            "own.py:NUMBER is not a policy of your own: a policy must have a n",
            None,
        ),
        ("own.py:USUAL", "not a policy of your own: there is a policy AT-TSM already", None),
        ("own.py", "own.py names no policy of the file", ":NAME"),
        ("none.py:X", "there is no file", "`rsp policies new FILE` writes one"),
        ("empty.py:X", "empty.py has no policy X", "it has no policy at all"),
        ("bad.py:X", r"bad.py, line 2: the file cannot be imported: ZeroDivisionError: div", None),
        ("slip.py:X", r"slip.py, line 1: the file cannot be imported: SyntaxError", None),
    ],
)
def test_what_is_no_policy_of_a_file_is_refused_with_the_reason(own, name, reason, hint):
    folder = own.parent
    (folder / "empty.py").write_text("")
    (folder / "bad.py").write_text("one = 1\ntwo = one / 0\n")
    (folder / "slip.py").write_text("def (:\n")
    with pytest.raises(BindingError, match=reason) as raised:
        policy_named(f"{folder}/{name}")
    assert hint is None or hint in str(raised.value.hint)


def test_a_policy_of_a_file_has_no_parameters(own):
    with pytest.raises(ValueError, match=r"own.py:LAST has no parameters"):
        policy_named(f"{own}:LAST+wp=1")


SUITE = """
title = "Own"
varied = "budget"
[[grid]]
name = "g"
policies = ["{policy}", "AT-TSM"]
ch = [20]
budget = [5]
k = [5]
n = [10]
"""


def test_suites_take_policies_of_files_with_what_follows_a_name(own, tmp_path):
    found = variant(f"{own}:OLDEST+signal+list")
    assert (found.policy.name, found.has_signal, found.keeps_list) == ("OLDEST", True, True)
    suite = tmp_path / "suite.toml"
    suite.write_text(SUITE.format(policy=f"{own}:OLDEST+signal"))
    assert read_suite(suite).grids[0].policies == (f"{own}:OLDEST+signal", "AT-TSM")
    suite.write_text(SUITE.format(policy=f"{own}:NONE"))
    with pytest.raises(SuiteError, match=r"policies: .*own.py has no policy NONE"):
        read_suite(suite)


def test_a_folder_may_have_a_plus_in_its_name(tmp_path):
    folder = tmp_path / "c++"
    folder.mkdir()
    (folder / "own.py").write_text(OWN)
    assert variant(f"{folder}/own.py:LAST+signal").policy.name == "LAST"
