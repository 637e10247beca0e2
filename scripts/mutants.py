"""Put small defects into the code, one at a time, and list those that no test notices.

    python scripts/mutants.py                                 300 of the policies and of MinTopk
    python scripts/mutants.py --count 20 --seed 7 rsp_engine/policies/voi
    python scripts/mutants.py --count 0 rsp_engine/policies   all of them

A mutant is a copy of the project with one expression or statement changed: a comparison, an
arithmetic operator, a constant, a condition, a returned value, a statement left out. The tests
listed in `TESTS` run until the first one fails: first as `make test-fast` runs them, which kills
most, then with as many examples as usual. A mutant that passes them all survives: either no test
checks what it changes, or it computes the same answers in another way. Survivors are printed with
their place and their difference, and exit code 1 says that there are some.

The same seed gives the same mutants, as long as the code is the same. What is left out on purpose:
texts, annotations, decorators, `strict=` of zip, and the functions `check` and `_check`, which
assert invariants for the tests and change no answer.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import multiprocessing
import os
import resource
import shutil
import sys
import time
from copy import deepcopy
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ["rsp_engine/policies", "rsp_engine/operators/topk"]
TESTS = {
    "rsp_engine/policies": ["tests/policies/test_policies.py", "tests/policies"],
    "rsp_engine/policies/voi": [
        "tests/policies/test_voi_formulas.py",
        "tests/policies/test_voi.py",
        "tests/policies",
        "tests/evaluators/test_voi.py",
    ],
    "rsp_engine/operators/topk": [
        "tests/operators/test_topk_cases.py",
        "tests/operators/test_topk.py",
        "tests/operators/test_topk_n.py",
        "tests/operators/test_ranked.py",
        "tests/operators/test_whole_window.py",
    ],
    "rsp_engine/operators/topk/keyed_topk.py": ["tests/operators/test_ranked.py"],
    "rsp_engine/operators/topk/baselines": [
        "tests/operators/test_topk.py",
        "tests/operators/test_sap.py::test_the_baselines_give_the_ranking_of_the_oracle",
    ],
}
"""The tests of each part of the package, in the order in which they run; the longest path counts.

The examples in the docstrings of the changed file run before them.
"""
LONGEST_S = 120
"""A mutant that takes more time of the processor is killed: it loops."""
COMMON = ("lark", "numpy", "pyarrow", "pyoxigraph", "rdflib", "requests", "rich", "typer", "xdist")
"""Packages that the tests import; imported once, before the mutants are forked."""

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


class Mutant(NamedTuple):
    """A file with one place changed: the bytes from `start` to `end` become `text`."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    def source(self) -> bytes:
        """Return the file with the change."""
        before = (ROOT / self.path).read_bytes()
        return before[: self.start] + self.text.encode() + before[self.end :]

    def difference(self) -> str:
        """Return the changed lines, those before and those after."""
        before = (ROOT / self.path).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(before, self.source().decode().splitlines(), n=0, lineterm="")
        return "\n".join(
            line for line in lines if line[:3] not in ("---", "+++") and line[0] != "@"
        )


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    text = (ROOT / path).read_bytes()
    offsets = [0]
    for line in text.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    for node, changed in _changes(ast.parse(text)):
        start = offsets[node.lineno - 1] + node.col_offset
        end = offsets[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        code = ast.unparse(changed)
        yield Mutant(
            path, node.lineno, start, end, f"({code})" if isinstance(node, ast.expr) else code
        )


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST]]:
    """Yield each part of a tree that is changed, and what it becomes."""
    match node:
        case ast.FunctionDef(name="check" | "_check") | ast.JoinedStr() | ast.keyword(arg="strict"):
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.expr():
            yield from ((node, changed) for changed in _expressions(node))
        case ast.stmt():
            yield from ((node, changed) for changed in _statements(node))
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child)
        if name in ("test", "ifs"):  # a condition is turned round
            for test in value if isinstance(value, list) else [value]:
                if not isinstance(test, ast.Compare):  # which is turned round as a comparison
                    yield test, ast.UnaryOp(ast.Not(), test)


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(ops=ops):
            for place, operator in enumerate(ops):
                for other in COMPARISONS[type(operator)]:
                    changed = deepcopy(node)
                    changed.ops[place] = other()
                    yield changed
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC:
            yield ast.BinOp(node.left, ARITHMETIC[type(operator)](), node.right)
        case ast.BoolOp(op=operator):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))


def _statements(node: ast.stmt) -> Iterator[ast.stmt]:
    match node:
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.AugAssign(op=operator) if type(operator) in ARITHMETIC:
            yield ast.AugAssign(node.target, ARITHMETIC[type(operator)](), node.value)
            yield ast.Pass()
        case ast.Expr(value=ast.Call() | ast.Yield()) | ast.Raise() | ast.Break() | ast.Continue():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield ast.Pass()


class WithoutShrinking:
    """Let Hypothesis stop at the first failure: which one it is does not matter here."""

    def pytest_collection(self) -> None:
        """Change the settings after `tests/conftest.py` and before any test is imported."""
        phases = (Phase.explicit, Phase.generate)
        usual = settings.default
        settings.register_profile("mutants", usual, phases=phases, derandomize=True, database=None)
        settings.load_profile("mutants")


def is_green(folder: Path, path: Path, *, is_fast: bool) -> bool:
    """Run the tests of a file in a copy of the project; return whether none fails."""
    if not _passes(folder, path, is_fast=True):
        return False
    return is_fast or _passes(folder, path, is_fast=False)


def _passes(folder: Path, path: Path, *, is_fast: bool) -> bool:
    process = multiprocessing.get_context("fork").Process(target=_run, args=(folder, path, is_fast))
    process.start()
    process.join()
    return process.exitcode == 0


def _run(folder: Path, path: Path, is_fast: bool) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_S, LONGEST_S))
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=no", "--doctest-modules"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins are imported already
    if is_fast:
        os.environ["RSP_FAST"] = "1"
        options += ["-m", "not outside"]
    os._exit(pytest.main([*options, str(path), *tests_of(path)], plugins=[WithoutShrinking()]))


def tests_of(path: Path) -> list[str]:
    """Return the tests of a file of the package."""
    parts = [part for part in TESTS if path.is_relative_to(part)]
    if not parts:
        raise SystemExit(f"{path}: TESTS has no tests for it")
    return TESTS[max(parts, key=len)]


def chosen(targets: list[str], count: int, seed: int) -> list[Mutant]:
    """Return so many mutants of files or folders by chance, or all if the count is 0."""
    files: list[Path] = []
    for target in targets:
        files += sorted((ROOT / target).rglob("*.py")) or [ROOT / target]
    found = [mutant for file in files for mutant in mutants(file.relative_to(ROOT))]
    if 0 < count < len(found):
        found = sorted(Random(seed).sample(found, count))  # noqa: S311 - a sample
    return found


def main() -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", default=TARGETS, help="files or folders to change")
    parser.add_argument("--count", type=int, default=300, help="how many mutants; 0 for all")
    parser.add_argument("--seed", type=int, default=1, help="which of them")
    parser.add_argument("--fast", action="store_true", help="run the tests as make test-fast does")
    arguments = parser.parse_args()
    sample = chosen(arguments.targets, arguments.count, arguments.seed)
    for name in COMMON:
        importlib.import_module(name)
    survivors = 0
    with TemporaryDirectory() as temporary:
        copy = Path(temporary) / "project"
        unused = shutil.ignore_patterns(".*", "__pycache__", "docs", "benchmarks")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=unused)
        for path in {str(tests_of(mutant.path)): mutant.path for mutant in sample}.values():
            if not is_green(copy, path, is_fast=arguments.fast):
                raise SystemExit(f"without any mutant, these fail: {' '.join(tests_of(path))}")
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True  # a mutant leaves nothing behind
        for number, mutant in enumerate(sample, 1):
            begun = time.monotonic()
            (copy / mutant.path).write_bytes(mutant.source())
            survives = is_green(copy, mutant.path, is_fast=arguments.fast)
            shutil.copy2(ROOT / mutant.path, copy / mutant.path)
            survivors += survives
            outcome = "SURVIVED" if survives else "killed"
            took = time.monotonic() - begun
            print(f"{number:4} {mutant.path}:{mutant.line} {outcome} {took:.1f} s", flush=True)
            if survives:
                print(mutant.difference(), flush=True)
    print(f"{len(sample)} mutants: {len(sample) - survivors} killed, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
