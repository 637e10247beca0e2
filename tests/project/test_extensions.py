"""The extensions in CONTRIBUTING.md: each diff applies to a copy of the package, and works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.data import PROJECT

pytestmark = pytest.mark.outside

DIFFS = dict(
    re.findall(
        r"```diff (\w+)\n(.*?)```",
        (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
)
RUN = """
    from rsp_engine import Engine

    def answers(text, source, **options):
        engine = Engine(**options)
        engine.register(f"PREFIX : <http://example.org/> REGISTER RSTREAM :q AS {text}")
        engine.bind("http://example.org/s", source)
        rows = [(a.window.close, [*map(str, r.bindings.values())])
                for a in engine.run() for r in a.content.rows]
        return rows, engine.explain()

    def counted(pattern):
        window = "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 5s]"
        text = f"SELECT (COUNT(*) AS ?n) {window} WHERE {{ WINDOW :w {{ {pattern} }} }}"
        pairs = [(1000 * t, f"<urn:{t % 3}> <urn:p> {t % 2} .") for t in range(1, 30)]
        return answers(text, pairs)
"""
CHECKS = {
    "policy": """
        from rsp_engine.policies.registry import POLICIES
        assert POLICIES["AT-MRU"].summary == "the freshest first"
    """,
    "source": """
        import pathlib
        line = '{} <urn:a> <urn:p> "{}" .\\n'
        text = "".join(line.format(t, t) for t in (1000, 2000)) + "this is no time\\n"
        pathlib.Path("a.tnt").write_text(text)
        letters = []
        window = "FROM NAMED WINDOW :w ON :s [RANGE 5s]"
        rows, _ = answers(f"SELECT ?v {window} WHERE {{ WINDOW :w {{ ?x ?p ?v }} }}", "a.tnt",
                          dead_letter=letters.append)
        assert [close for close, _ in rows] == [5000, 5000]
        assert [letter.position for letter in letters] == [3]
    """,
    "flag": """
        import subprocess, sys
        pairs = [(1000 * t, "<urn:a> <urn:p> 1 .") for t in range(1, 30)]
        window = "FROM NAMED WINDOW :w ON :s [RANGE 5s]"
        rows, _ = answers(f"SELECT * {window} WHERE {{ WINDOW :w {{ ?x ?p ?v }} }}", pairs,
                          most_answers=2)
        assert [close for close, _ in rows] == [5000, 10000]
        shown = subprocess.run([sys.executable, "-m", "rsp_engine.cli", "run", "--help"],
                               capture_output=True, text=True, check=True).stdout
        assert "--most-answers" in shown and "End the run after this many answers." in shown
    """,
    "evaluator": """
        from dataclasses import replace
        from pyoxigraph import NamedNode, Triple
        from rsp_engine.evaluators.step import Step
        from rsp_engine.evaluators.triple_count import TripleCountConfig
        from rsp_engine.grammar import check
        from rsp_engine.plan.planner import plan
        window = "FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 10ms STEP 5ms]"
        text = f"SELECT (COUNT(*) AS ?n) {window} WHERE {{ WINDOW <urn:w> {{ ?a ?b ?c }} }}"
        general = plan(check(text), text, "q").physical
        step = Step(replace(general, operator=TripleCountConfig(general.operator.query)))
        names = [NamedNode(f"urn:{n}") for n in range(3)]
        for time in range(1, 16):
            step.take("urn:s", time, [Triple(names[0], names[1], names[time % 3])], time)
        found = [row.bindings["n"].value for a in step.due(16) for row in a.content.rows]
        assert found == ["3", "3"], found
    """,
    "recogniser": """
        rows, explained = counted("?a ?b ?c")
        assert "all triples of one window are counted" in explained
        expected, general = counted("?a ?b ?c FILTER (true)")
        assert "general path" in general and rows == expected and len(rows) > 3
    """,
}
AFTER = {"recogniser": "evaluator"}
"""The diff that another one builds on."""


def test_every_kind_of_extension_is_shown():
    assert DIFFS.keys() == CHECKS.keys()


@pytest.mark.parametrize("name", CHECKS)
def test_an_extension_is_one_file_and_its_registration(name, tmp_path):
    package = tmp_path / "rsp_engine"
    shutil.copytree(
        PROJECT / "rsp_engine", package, ignore=shutil.ignore_patterns("__pycache__", ".*")
    )
    for each in (AFTER.get(name), name):
        if each is not None:
            (tmp_path / "change.diff").write_text(DIFFS[each], encoding="utf-8")
            apply = ["git", "apply", "--unidiff-zero", "change.diff"]
            subprocess.run(apply, cwd=tmp_path, check=True)  # noqa: S603
    assert len(re.findall("^diff --git", DIFFS[name], re.MULTILINE)) <= 2
    program = dedent(RUN) + dedent(CHECKS[name])
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", program]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)  # noqa: S603
