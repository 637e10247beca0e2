"""The manifest of a run: its options, versions and outcome, as one JSON document.

It is written when a run starts, with the state `running`, and again when it ends. The manifest of a
run that was killed therefore stays `running`. Secrets are redacted before it is written.
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
    from rsp_engine.monitor.run_monitor import QueryStatistics, RunMonitor

__all__ = ["Manifest", "RunState"]

RunState = Literal["running", "finished", "stopped", "output closed", "interrupted", "failed"]
"""The state of a run: `stopped` is an orderly stop, `output closed` a reader that exited."""

_PACKAGES = ("pyspark", "pyarrow", "pyoxigraph", "numpy", "requests")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Manifest:
    """The manifest of a run, written to a file."""

    path: Path
    options: Mapping[str, Any]
    """The options of the run as plain data, with the bindings of streams and services."""
    version: str
    monitor: RunMonitor
    hide: Redactor
    clock: Callable[[], datetime] = _now
    started: datetime | None = None

    def begin(self) -> None:
        """Write the state `running`; raise `SinkError` if the file cannot be written."""
        self.started = self.clock()
        self._write("running", None, None)

    def end(self, state: RunState, exit_code: int, error: str | None = None) -> None:
        """Write the final state of the run."""
        self._write(state, exit_code, error)

    def _write(self, state: RunState, exit_code: int | None, error: str | None) -> None:
        document = {
            "state": state,
            "exit_code": exit_code,
            "error": error,
            **self._times(state),
            "versions": {"rsp-engine": self.version, **_versions()},
            "options": dict(sorted(self.options.items())),
            "streams": self.monitor.sources(),
            "queries": [self._query(name, seen) for name, seen in self.monitor.queries.items()],
            "service_budgets": {
                service: dict(keys) for service, keys in self.monitor.service_budgets.items()
            },
            "sinks": [status._asdict() for status in self.monitor.deliveries()],
            "input": {
                "elements": self.monitor.elements,
                "triples": self.monitor.triples,
                "between_windows": self.monitor.between_windows,
                "late": self.monitor.late,
                "dead_letters": self.monitor.dead,
            },
        }
        text = json.dumps(self.hide.data(document), ensure_ascii=False, indent=2) + "\n"
        _replace(self.path, text)

    def _times(self, state: RunState) -> dict[str, Any]:
        assert self.started is not None, "`begin` was called"  # noqa: S101
        now = None if state == "running" else self.clock()
        return {
            "started": _iso(self.started),
            "ended": None if now is None else _iso(now),
            "seconds": None if now is None else round((now - self.started).total_seconds(), 3),
        }

    def _query(self, name: str, seen: QueryStatistics) -> dict[str, Any]:
        info = seen.info
        refreshed = {
            service: dict(outcomes)
            for (query, service), outcomes in self.monitor.refreshed().items()
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
            **({} if seen.belief is None else {"belief": seen.belief}),
            "evaluation_seconds": _summary(seen.evaluation),
            "remote_age_seconds": _summary(seen.ages),
        }


def _summary(histogram: Histogram) -> dict[str, Any]:
    count = histogram.count
    mean = histogram.total / count if count else None
    return {
        "count": count,
        "mean": None if mean is None else round(mean, 6),
        "largest": round(histogram.largest, 6) if count else None,
    }


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _iso(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically."""
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
        temporary.replace(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"the manifest {path} cannot be written: {reason}"
        raise SinkError(message, "name a file in a folder that you may write to") from None
