"""Help is in groups, and whole at any width."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import get_type_hints

import pytest

from rsp_engine.cli.flags import RunFlags
from rsp_engine.model.option import declared
from tests.cli.test_run import rsp
from tests.documents import commands

GROUPS = list(get_type_hints(RunFlags).values())


def shown(width: int, *words: str) -> str:
    """Return the help of a command on a terminal of some width."""
    done = rsp(*words, "--help", env={"COLUMNS": str(width)})
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= width
    return done.stdout


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("word", ["run", "explain"])
def test_every_sentence_of_help_is_whole(word, width):
    text = shown(width, word)
    plain = " ".join(text.split())
    assert "…" not in text
    for group in GROUPS:
        assert f"\n{group.title}:\n" in text
        for known in declared(group):
            assert f"{known.flag} " in plain
            if (word, known.name) != ("explain", "output_format"):
                assert " ".join(known.help.split()) in plain
            assert all(name in plain for name in known.choices)


@pytest.mark.parametrize("width", [80, 120])
def test_every_command_is_listed_with_its_sentence(width):
    plain = " ".join(shown(width).split())
    for name, command in commands().items():
        if name and " " not in name:
            sentence = " ".join((command.help or "").split("\n\n")[0].split())
            assert f"{name} {sentence}" in plain


def complete(line: str) -> list[str]:
    """Return what the shell would offer after a line."""
    place = str(line.count(" "))
    asked = {"_RSP_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": place}
    code = "from rsp_engine.cli import main; main(prog_name='rsp')"
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, check=True
    )
    return done.stdout.decode().split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("rsp ru", ["run"]),
        ("rsp run --pol", ["--policy"]),
        ("rsp run --policy AT-T", ["AT-TSM"]),
        ("rsp explain --operator sap", ["sap", "sap-dynamic", "sap-equal"]),
        ("rsp run --runner ", ["auto", "local", "spark"]),
        ("rsp run --format sparql", ["sparql-json", "sparql-xml"]),
        ("rsp explain --format s", ["svg"]),
        ("rsp run que", []),
        ("rsp run --output ans", []),
    ],
)
def test_a_shell_completes_names_and_leaves_files_to_itself(line, offered):
    assert complete(line) == offered
