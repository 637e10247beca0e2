"""Put small defects into the code, one at a time, and list those that no test notices.

    python scripts/mutants.py                                 300 of the policies and of MinTopk
    python scripts/mutants.py --count 20 --seed 7 rsp_engine/policies/voi
    python scripts/mutants.py --count 0 rsp_engine/policies   all of them

A mutant is the package with one expression or statement changed: a comparison, an arithmetic
operator, a constant, a condition, a returned value, a statement left out. The tests listed in
`TESTS` run until the first one fails, beginning with that which killed the last mutant: first as
`make test-fast` runs them, which kills most, then with as many examples as usual. A mutant that
passes them all survives: either no test checks what it changes, or it computes the same answers in
another way. Survivors are printed with their place and their difference, those of a part of the
package once its tests have run, and exit code 1 says that there are some.

These survivors need no test, since they change no answer: the size of a block or of a cell, the
number from which another way to the same answer is taken, the value of padding, which of several
equal values is read, and a shortcut that is left out. A survivor that keeps what is no longer
needed is a leak, and needs one.

No file is changed. The tests are imported and collected once; then each mutant has a process of its
own, forked from that one, in which the changed module is grafted into the loaded one.

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
import sys
from collections import defaultdict
from copy import deepcopy
from dataclasses import fields, is_dataclass
from pathlib import Path
from random import Random
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ["rsp_engine/policies", "rsp_engine/operators/topk"]
TESTS = {
    "rsp_engine/policies": ["tests/policies/test_policies.py", "tests/policies"],
    "rsp_engine/policies/voi": [
        "tests/policies/test_voi.py",
        "tests/policies/test_voi_formulas.py",
        "tests/evaluators/test_voi.py",
    ],
    "rsp_engine/operators/topk": [
        "tests/operators/test_topk_cases.py",
        "tests/operators/test_topk.py",
        "tests/operators/test_topk_n.py",
        "tests/operators/test_ranked.py",
        "tests/operators/test_whole_window.py",
    ],
    "rsp_engine/operators/topk/keyed_topk.py": [
        "tests/operators/test_keyed_topk.py",
        "tests/operators/test_ranked.py",
    ],
    "rsp_engine/operators/topk/baselines": [
        "tests/operators/test_window_index.py",
        "tests/operators/test_topk.py",
        "tests/operators/test_sap.py::test_the_baselines_give_the_ranking_of_the_oracle",
    ],
}
"""The tests of each part of the package, in the order in which they run; the longest path counts.

The examples in the docstrings of the part run before them.
"""
LONGEST = 5
"""A mutant that takes so many times the time of the processor without any is killed: it loops."""

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


def graft(mutant: Mutant) -> None:
    """Change the loaded module, in place: others may have imported any part of it."""
    name = ".".join(mutant.path.with_suffix("").parts).removesuffix(".__init__")
    loaded, changed = importlib.import_module(name), ModuleType(name)
    changed.__dict__.update(__file__=str(ROOT / mutant.path), __package__=loaded.__package__)
    exec(compile(mutant.source(), str(mutant.path), "exec"), changed.__dict__)  # noqa: S102
    for part, new in vars(changed).items():
        old = vars(loaded).get(part)
        if part.startswith("__") or getattr(new, "__module__", name) != name:
            continue
        if not _graft_value(old, new):
            for module in list(sys.modules.values()):
                if getattr(module, part, None) is old:
                    setattr(module, part, new)


def _graft_value(old: Any, new: Any) -> bool:  # noqa: ANN401 - of any type
    """Make a function, a class or a dataclass equal to another; return whether it is one."""
    match new:
        case FunctionType():
            for part in ("__code__", "__defaults__", "__kwdefaults__"):
                setattr(old, part, getattr(new, part))
            if hasattr(old, "__wrapped__"):  # what a decorator has put around it is the same
                _graft_value(old.__wrapped__, new.__wrapped__)
        case classmethod() | staticmethod():
            _graft_value(old.__func__, new.__func__)
        case property():
            _graft_value(old.fget, new.fget)
        case type():
            for part, value in vars(new).items():
                before = vars(old).get(part)
                if isinstance(value, int | float | bool | str | tuple):
                    setattr(old, part, value)
                elif isinstance(before, FunctionType | classmethod | staticmethod | property):
                    _graft_value(before, value)
        case _ if is_dataclass(new):
            for field in fields(new):
                object.__setattr__(old, field.name, getattr(new, field.name))
        case _:
            return False
    return True


class Trial:
    """A plugin that runs the collected tests once for each mutant, and sends who survived."""

    def __init__(self, mutants: list[Mutant], survivors: Connection) -> None:
        self._mutants = mutants
        self._survivors = survivors
        self._longest_s = resource.RLIM_INFINITY

    def pytest_collection(self) -> None:
        """Let Hypothesis stop at the first failure, before any test is imported."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "trial", settings.default, phases=phases, derandomize=True, database=None
        )
        settings.load_profile("trial")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Fork a process for each mutant; the first is none, and must pass."""
        if self._killer(session, None) is not None:
            self._survivors.send(None)
            return True
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._longest_s = LONGEST * (1 + round(used.ru_utime + used.ru_stime))
        survivors = []
        for mutant in self._mutants:
            killer = self._killer(session, mutant)
            print("." if killer is None else "x", end="", file=sys.__stderr__, flush=True)
            if killer is None:
                survivors.append(mutant)
            else:
                session.items.insert(0, session.items.pop(killer))
        self._survivors.send(survivors)
        return True

    def _killer(self, session: pytest.Session, mutant: Mutant | None) -> int | None:
        """Return the place of the test that kills a mutant, 0 if it ends in another way."""
        mine, theirs = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(
            target=self._run, args=(session, mutant, theirs)
        )
        process.start()
        theirs.close()
        with mine:
            try:
                killer: int | None = mine.recv()
            except EOFError:
                killer = 0
        process.join()
        return killer

    def _run(self, session: pytest.Session, mutant: Mutant | None, told: Connection) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (self._longest_s, self._longest_s))
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        following = (*session.items[1:], None)
        try:
            if mutant is not None:
                graft(mutant)
            for place, (item, later) in enumerate(zip(session.items, following, strict=True)):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=later)
                if session.testsfailed:
                    told.send(place)
                    os._exit(1)
        except BaseException:  # a mutant may end in any way
            os._exit(1)
        told.send(None)
        os._exit(0)


def survivors_of(part: str, mutants: list[Mutant], *, is_fast: bool) -> list[Mutant]:
    """Return the mutants of a part of the package that its tests let pass."""
    mine, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_session, args=(part, mutants, theirs, is_fast)
    )
    process.start()
    theirs.close()
    try:
        survivors: list[Mutant] | None = mine.recv()
    except EOFError:
        survivors = None
    process.join()
    if survivors is None:
        raise SystemExit(f"without any mutant, these fail: {' '.join(TESTS[part])}")
    return survivors


def _session(part: str, mutants: list[Mutant], survivors: Connection, is_fast: bool) -> None:
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - to the end of the process
    options = ["-x", "-q", "-p", "no:cacheprovider", "--doctest-modules"]
    if is_fast:
        os.environ["RSP_FAST"] = "1"
        options += ["-m", "not outside"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Hypothesis is imported already
    pytest.main([*options, part, *TESTS[part]], plugins=[Trial(mutants, survivors)])


def part_of(path: Path) -> str:
    """Return the part of the package, among those with tests, that a file belongs to."""
    parts = [part for part in TESTS if path.is_relative_to(part)]
    if not parts:
        raise SystemExit(f"{path}: TESTS has no tests for it")
    return max(parts, key=len)


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
    parts = defaultdict(list)
    for mutant in sample:
        parts[part_of(mutant.path)].append(mutant)
    survivors = []
    for part, found in parts.items():
        for is_fast in (True,) if arguments.fast else (True, False):
            found = found and survivors_of(part, found, is_fast=is_fast)  # noqa: PLW2901
        survivors += found
        for mutant in found:
            print(f"\n{mutant.path}:{mutant.line}\n{mutant.difference()}", flush=True)
    print(
        f"\n{len(sample)} mutants: {len(sample) - len(survivors)} killed, {len(survivors)} survived"
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
