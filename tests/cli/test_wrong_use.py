"""What a user does wrong ends in a few lines that say what to do: `tests/cases/wrong_use.txt`."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.cli.test_run import QUERY, here, rsp
from tests.data import PROJECT

__all__ = ["here"]

TEXT = (PROJECT / "tests" / "cases" / "wrong_use.txt").read_text(encoding="utf-8")
CASES = re.findall(r"^\$ rsp (.*)\n((?:.*\n)*?)\[(\d)\]$", TEXT, re.MULTILINE)


@pytest.fixture
def folder(here):
    """Beside what is right, files that are not."""
    (here / "folder").mkdir()
    (here / "readings.xyz").write_text("x")
    changed = {
        "slip": ("RANGE 10s", "RANGE 10 STEP"),
        "remote": ("?t } }", "?t } SERVICE :bkg { ?room :floor ?f } }"),
        "graph": ("FROM NAMED WINDOW", "FROM <nowhere.ttl> FROM NAMED WINDOW"),
    }
    for name, (old, new) in changed.items():
        (here / f"{name}.rspql").write_text(QUERY.replace(old, new, 1))
    return here


def test_there_are_enough_cases():
    assert len(CASES) >= 25


@pytest.mark.parametrize(("words", "said", "code"), CASES, ids=[case[0] for case in CASES])
def test_a_mistake_is_answered_by_what_to_do(folder, words, said, code):
    result = rsp(*shlex.split(words))
    assert result.stderr == said
    assert result.exit_code == int(code)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["run", "hot.rspql", "--bugdet", "3"], "--budget"),
        (["run", "hot.rspql", "--operator", "best"], "mintopk"),
        (["run", "hot.rspql", "--t0", "yesterday"], "--t0"),
        (["run", "hot.rspql", "--report", "some"], "nonempty"),
        (["rnu"], "rnu"),
    ],
)
def test_a_flag_that_cannot_be_is_named(folder, words, named):
    result = rsp(*words)
    assert result.exit_code == 2
    assert named in result.stderr
    assert "Traceback" not in result.stderr
