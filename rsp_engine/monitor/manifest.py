"""The manifest of a run: what was run, with what, and what came of it, as one JSON document.

It is written when a run begins, with the state `running`, and again when it ends: a run that was
killed has told nothing else. Secrets are hidden before anything is written.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal

from rsp_engine.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rsp_engine.monitor.histogram import Histogram
    from rsp_engine.monitor.redaction import Redactor
    from rsp_engine.monitor.run_monitor import QuerySeen, RunMonitor

__all__ = ["Manifest", "RunState"]

RunState = Literal["running", "finished", "stopped", "output closed", "interrupted", "failed"]
"""How a run is, or how it ended: by itself, after Ctrl-C, with what reads its answers, or badly."""

_PACKAGES = ("pyspark", "pyarrow", "pyoxigraph", "numpy", "requests")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Manifest:
    """Writes the manifest of a run to a file."""

    path: Path
    options: Mapping[str, Any]
    """What was given, as plain data: what streams and services are bound to, too."""
    version: str
    watch: RunMonitor
    hide: Redactor
    clock: Callable[[], datetime] = _now
    started: datetime | None = None

    def begin(self) -> None:
        """Write that the run begins; a file that cannot be written is refused here."""
        self.started = self.clock()
        self._write("running", None, None)

    def end(self, state: RunState, exit_code: int, error: str | None = None) -> None:
        """Write how the run ended."""
        self._write(state, exit_code, error)

    def _write(self, state: RunState, exit_code: int | None, error: str | None) -> None:
        whole = {
            "state": state,
            "exit_code": exit_code,
            "error": error,
            **self._times(state),
            "versions": {"rsp-engine": self.version, **_versions()},
            "options": dict(sorted(self.options.items())),
            "streams": self.watch.sources(),
            "queries": [self._query(name, seen) for name, seen in self.watch.queries.items()],
            "input": {
                "elements": self.watch.elements,
                "triples": self.watch.triples,
                "between_windows": self.watch.between_windows,
                "late": self.watch.late,
                "dead_letters": self.watch.dead,
            },
        }
        text = json.dumps(self.hide.data(whole), ensure_ascii=False, indent=2) + "\n"
        _replace(self.path, text)

    def _times(self, state: RunState) -> dict[str, Any]:
        assert self.started is not None, "it has begun"  # noqa: S101
        now = None if state == "running" else self.clock()
        return {
            "started": _iso(self.started),
            "ended": None if now is None else _iso(now),
            "seconds": None if now is None else round((now - self.started).total_seconds(), 3),
        }

    def _query(self, name: str, seen: QuerySeen) -> dict[str, Any]:
        info = seen.info
        refreshed = {
            service: dict(outcomes)
            for (query, service), outcomes in self.watch.refreshed().items()
            if query == name
        }
        return {
            "query": name,
            "form": info.form,
            "operator": info.operator,
            "streams": dict(info.streams),
            "policies": dict(info.policies),
            "windows": seen.windows,
            "rows": seen.rows,
            "exact": seen.exact,
            "budget_spent": seen.budget_spent,
            "requests": seen.requests,
            "cold_misses": seen.cold_misses,
            "stale": seen.stale,
            "faults": dict(sorted(seen.faults.items())),
            "refreshed": refreshed,
            "evaluation_seconds": _spread(seen.evaluation),
            "remote_age_seconds": _spread(seen.ages),
        }


def _spread(values: Histogram) -> dict[str, Any]:
    count = values.count
    mean = values.total / count if count else None
    return {
        "count": count,
        "mean": None if mean is None else round(mean, 6),
        "largest": round(values.largest, 6) if count else None,
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _iso(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _replace(path: Path, text: str) -> None:
    """Write a file whole, or not at all."""
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(text, encoding="utf-8", errors="backslashreplace")
        beside.replace(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"the manifest {path} cannot be written: {reason}"
        raise SinkError(message, "name a file in a folder that you may write to") from None
