"""Result folders: one for each suite that is run.

    manifest.json       what was run: the suite, its data and grids, seed and versions
    rows/PART.csv       the rows of a task; written atomically, so a part is complete or missing

While a suite runs, the manifest has no `parts`; once all tasks are done, it lists each part with
its SHA-256. So an interrupted run can be resumed, and a finished folder can be verified. A folder
contains neither dates nor host names: the same suite gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine import __version__
from rsp_engine.errors import SourceError, StateError
from rsp_engine.experiments.bundled_suites import known_suites
from rsp_engine.experiments.datasets.traces import FOLLOWERS_FILE, MENTIONS_FILE
from rsp_engine.experiments.suite import ParameterGrid, PolicyComparison
from rsp_engine.experiments.tasks import RESULT_COLUMNS, tasks_of, work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.experiments.process_pool import TaskRunner
    from rsp_engine.experiments.suite import Suite
    from rsp_engine.experiments.tasks import Task

__all__ = [
    "Results",
    "command_of",
    "folder_name",
    "is_result_folder",
    "manifest_of",
    "read_result_folder",
    "run_suite",
]

FORMAT = 2
_MANIFEST = "manifest.json"
_ROWS = "rows"
_AGAIN = "delete the folder, or choose another one with --results"


def folder_name(suite: Suite) -> str:
    """Return the name of a suite's result folder."""
    source = "" if suite.data.source == "generated" else f"-{suite.data.source}"
    return f"{suite.name}{source}{'-quick' if suite.is_quick else ''}"


def manifest_of(suite: Suite) -> dict[str, Any]:
    """Return everything that determines the results, in the form that JSON gives back."""
    data = asdict(suite.data)
    folder, replay = data.pop("folder"), data.pop("replay")
    own = suite.data.own
    files = [replay] if replay else [own.mentions, own.history] if own else []
    traces = None if folder is None else _digests(Path(folder))
    if files:
        traces = {Path(file).name: _digest(Path(file).read_bytes()) for file in files}
    if own:
        data["own"] = {k: v for k, v in data["own"].items() if k not in {"mentions", "history"}}
    manifest = {
        "format": FORMAT,
        "suite": suite.name,
        "title": suite.title,
        "section": suite.section,
        "varied": suite.varied,
        "quick": suite.is_quick,
        "data": {**data, "traces": traces},
        "grids": [asdict(grid) for grid in suite.grids],
        "comparisons": [asdict(comparison) for comparison in suite.comparisons],
        "versions": {
            "rsp_engine": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
    return dict(json.loads(json.dumps(manifest)))


def command_of(manifest: Mapping[str, Any]) -> str:
    """Return the command that gives the results of a manifest, with the names of its files.

    >>> data = {"source": "generated", "seed": 5, "traces": None}
    >>> command_of({"suite": "forgetting", "quick": True, "data": data})
    'rsp experiment run forgetting --quick --seed 5'
    """
    data = manifest["data"]
    name = manifest["suite"]
    is_bundled = name in {path.stem for path in known_suites()}
    words = ["rsp experiment run", shlex.quote(name if is_bundled else f"{name}.toml")]
    words += ["--quick"] if manifest["quick"] else []
    files = list(data.get("traces") or ())
    own = data.get("own")
    match data["source"]:
        case "recorded":
            words.append("--data FOLDER")
        case "replay":
            words.append(f"--replay {shlex.quote(files[0])}")
        case "own":
            range_, step = own["range"], own["step"]
            words += [f"--mentions {shlex.quote(files[0])}", f"--history {shlex.quote(files[-1])}"]
            for name in ("mention_columns", "history_columns"):
                words.append(f"--{name.replace('_', '-')} {shlex.quote(','.join(own[name]))}")
            words.append(f"--range {range_}ms --step {step}ms")
            words += ["--differences"] if own["has_differences"] else []
    return " ".join([*words, f"--seed {data['seed']}"])


def _digests(folder: Path) -> dict[str, str]:
    """Return the digests of recorded traces, or raise if one cannot be read."""
    if not folder.is_dir():
        hint = f"it must hold {MENTIONS_FILE} and {FOLLOWERS_FILE}"
        raise SourceError(f"the data folder {folder} is not there", hint)
    try:
        return {
            name: _digest((folder / name).read_bytes()) for name in (MENTIONS_FILE, FOLLOWERS_FILE)
        }
    except OSError as error:
        raise SourceError(f"{error.filename} cannot be read: {error.strerror}") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def run_suite(
    suite: Suite,
    root: Path,
    run_tasks: TaskRunner,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Path:
    """Run the tasks of a suite that are not done yet, and return its folder.

    `progress` is called with the number of tasks done and the number of all tasks. Raises a
    `StateError` where the folder has results of another run.
    """
    path = root / folder_name(suite)
    manifest = manifest_of(suite)
    existing = _begin(path, manifest)
    tasks = tasks_of(suite)
    if existing.get("parts") is not None:
        _check_parts(path, existing)
        progress(len(tasks), len(tasks))
        return path
    missing = [task for task in tasks if not _is_there(path, task)]
    done = len(tasks) - len(missing)
    progress(done, len(tasks))
    for task, text in run_tasks(work, missing):
        _write(path / _ROWS / task.part, text)
        done += 1
        progress(done, len(tasks))
    parts = {task.part: _digest((path / _ROWS / task.part).read_bytes()) for task in tasks}
    _write(path / _MANIFEST, _json({**manifest, "parts": parts}))
    return path


def _begin(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of a folder, creating both if needed; raise if it is of another run."""
    try:
        if path.exists() and not path.is_dir():
            raise StateError(f"{path} is no folder", _AGAIN)
        if not path.exists() or not any(path.iterdir()):
            (path / _ROWS).mkdir(parents=True, exist_ok=True)
            _write(path / _MANIFEST, _json(manifest))
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from None
    existing = _manifest(path)
    # Comparisons are made of results, and determine none of them.
    if existing.get("comparisons") != manifest["comparisons"]:
        existing["comparisons"] = manifest["comparisons"]
        if _difference(manifest, existing) is None:
            _write(path / _MANIFEST, _json(existing))
    if (key := _difference(manifest, existing)) is not None:
        was, now = _at(existing, key), _at(manifest, key)
        raise StateError(
            f"{path} holds results of another run: {key} was {was!r}, not {now!r}", _AGAIN
        )
    return existing


def _manifest(path: Path) -> dict[str, Any]:
    """Read the manifest of a folder."""
    file = path / _MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        raise StateError(f"{path} is no result folder: {_MANIFEST} is missing", _AGAIN) from None
    except ValueError as error:
        raise StateError(f"{file} is damaged: {error}", _AGAIN) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StateError(f"{file}: format: must be {FORMAT}", _AGAIN)
    return manifest


def _difference(wanted: Any, existing: Any, key: str = "") -> str | None:  # noqa: ANN401 - JSON
    """Return the dotted key of the first value that differs, None if all are equal.

    >>> _difference({"data": {"seed": 1}}, {"data": {"seed": 2}, "parts": {}})
    'data.seed'
    """
    if isinstance(wanted, dict) and isinstance(existing, dict):
        inner = (
            _difference(value, existing.get(name), f"{key}.{name}" if key else name)
            for name, value in wanted.items()
        )
        return next((one for one in inner if one is not None), None)
    return None if wanted == existing else key


def _at(content: Any, key: str) -> Any:  # noqa: ANN401 - JSON
    for name in key.split("."):
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _is_there(path: Path, task: Task) -> bool:
    """Return whether a task is done, judged by its part; raise if this is truncated."""
    file = path / _ROWS / task.part
    if not file.exists():
        return False
    lines = file.read_text(encoding="utf-8").splitlines()
    queries = sum(setting.queries or 1 for setting in task.settings)
    most = queries * task.data.windows + 1
    rows, left = divmod(len(lines) - 1, queries)
    if not lines or lines[0] != ",".join(RESULT_COLUMNS) or left or not rows or len(lines) > most:
        raise StateError(f"{file} is half-written", "delete this file, and run the suite again")
    return True


def _write(file: Path, text: str) -> None:
    """Write a file atomically."""
    waiting = file.with_name(f".{file.name}.tmp")
    with waiting.open("w", encoding="utf-8", newline="\n") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    waiting.replace(file)


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """A finished result folder."""

    path: Path
    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.path.name

    @property
    def grids(self) -> list[ParameterGrid]:
        """The grids that were run."""
        return [ParameterGrid(**_tuples(grid)) for grid in self.manifest["grids"]]

    @property
    def comparisons(self) -> list[PolicyComparison]:
        """The comparisons that the suite asks for."""
        return [PolicyComparison(**_tuples(one)) for one in self.manifest.get("comparisons", ())]

    def parts(self, grid: ParameterGrid) -> list[Path]:
        """Return the files that hold the rows of a grid."""
        names = [part for part in self.manifest["parts"] if part.startswith(f"{grid.slug}.")]
        return [self.path / _ROWS / name for name in names]


def _tuples(content: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}


def is_result_folder(path: Path) -> bool:
    """Return whether a folder is the result folder of a suite, finished or not."""
    return (path / _MANIFEST).exists() or (path / _ROWS).is_dir()


def read_result_folder(path: Path) -> Results:
    """Return a finished result folder; raise if it is unfinished or damaged."""
    if not path.is_dir():
        raise StateError(f"{path} is not there", "run the suite first: rsp experiment run")
    manifest = _manifest(path)
    if manifest.get("parts") is None:
        done = len(list((path / _ROWS).glob("*.csv")))
        hint = f"`rsp experiment run {manifest.get('suite')}` resumes it"
        raise StateError(f"{path} is half-written: parts: {done} are there, not all of them", hint)
    _check_parts(path, manifest)
    return Results(path, manifest)


def _check_parts(path: Path, manifest: dict[str, Any]) -> None:
    """Raise if a part of a finished folder is missing, or differs from its digest."""
    for part, digest in manifest["parts"].items():
        file = path / _ROWS / part
        if not file.exists() or _digest(file.read_bytes()) != digest:
            problem = "differs from what was run" if file.exists() else "is missing"
            raise StateError(f"{path}: parts: {part} {problem}", _AGAIN)
