"""The process of a group: one engine over logs, with a checkpoint. The server starts and stops it.

    python -m rsp_engine.server.groups.worker FOLDER

The folder has the description of the group. The process writes reports to standard output, a line
of JSON each, and stops after the current micro-batch when its standard input ends: so it never
outlives the server.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsp_engine.engine import Engine
from rsp_engine.errors import RspError
from rsp_engine.garbage import own_memory
from rsp_engine.io.sources.live.log.declaration import read_declaration
from rsp_engine.io.sources.live.log.log_source import LogSource
from rsp_engine.io.sources.live.log.stream_log import Keep
from rsp_engine.model.quantities import parse_duration
from rsp_engine.monitor.run_monitor import RunMonitor
from rsp_engine.server.groups.bindings import NO_FOLDER, set_up
from rsp_engine.server.groups.committed_log import AnswerLog, LetterLog
from rsp_engine.server.groups.group_plan import GroupPlan, read_plan
from rsp_engine.server.groups.places import begins, complete_from
from rsp_engine.server.groups.reports import query_report

if TYPE_CHECKING:
    from rsp_engine.drivers.checkpoint.commits import RewindableOutput
    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.server.groups.group_plan import PlannedStream

__all__ = ["Worker"]

_REPORT_S = 0.5
_GRACE_S = 8.0
"""How long the current micro-batch may take after a stop."""
_LETTERS = Keep(bytes=16 << 20)
_OF_STREAM = ("malformed", "future", "large")
"""Kinds of dead letters that the log of a stream has already: its messages cannot be read."""


class Worker:
    """An engine that runs the queries of a group."""

    def __init__(self, folder: Path, plan: GroupPlan) -> None:
        self._plan = plan
        self._folder = folder
        self.monitor = RunMonitor()
        self.letters = LetterLog(folder / "letters", None, _LETTERS)
        self.dead: Counter[tuple[str, str]] = Counter()
        """How many dead letters of this run each stream has of each kind."""
        self._logged = {stream.name for stream in plan.streams if stream.folder is not None}
        self.engine = Engine(
            **plan.bindings.options,
            checkpoint=folder / plan.checkpoint,
            runner="local",
            dead_letter=self._set_aside,
        )
        self.queries = self._registered()
        for stream in plan.streams:
            self.engine.bind(f"<{stream.iri}>", self._source(stream))
        self._begun = self._beginnings()
        self._logs = {
            job.name: AnswerLog(Path(job.answers), job.base, Keep(*job.keep)) for job in plan.jobs
        }

    def _registered(self) -> dict[str, Query]:
        """Bind what the queries need, and register them."""
        plan = self._plan
        set_up(self.engine, plan.bindings, plan.prefixes)
        registered = [self.engine.register(job.text, job.name, NO_FOLDER) for job in plan.jobs]
        return {query.physical.name: query for query in registered}

    def _source(self, stream: PlannedStream) -> LogSource | str:
        if stream.folder is None:
            return stream.source
        folder = Path(stream.folder)
        declaration = read_declaration(folder)
        idle = parse_duration(declaration.options.get("idle", "10s"))
        payloads = declaration.payloads(folder)
        return LogSource(folder, payloads, offset=stream.offset, idle=idle)

    def _beginnings(self) -> dict[str, Any]:
        kept = {s.iri: s.kept_from for s in self._plan.streams if s.kept_from is not None}
        physical = [query.physical for query in self.queries.values()]
        complete = complete_from(physical, kept)
        after = {job.name: job.after for job in self._plan.jobs}
        return {p.name: begins(p, after[p.name], complete) for p in physical}

    def _set_aside(self, letter: DeadLetter) -> None:
        stream = letter.source.partition("#")[0]
        if stream in self._logged and letter.kind in _OF_STREAM:
            return
        self.dead[stream, letter.kind] += 1
        self.letters.write(letter, stream)

    def run(self) -> None:
        """Run the queries until the engine is stopped, or the streams end."""
        outputs: list[RewindableOutput] = [*self._logs.values(), self.letters]
        self.engine.watched_by(self.monitor)
        answers = self.engine.run(outputs)
        own_memory()
        for answer in answers:
            self._write(answer)

    def _write(self, answer: Answer) -> None:
        if self._begun[answer.query].answers(answer.window):
            self._logs[answer.query].write(answer)

    def report(self) -> dict[str, Any]:
        """Return the figures of the run, as plain data."""
        monitor, usage = self.monitor, resource.getrusage(resource.RUSAGE_SELF)
        marks = monitor.watermarks()
        counts = asdict(self.engine.counts)
        return {
            "queries": {
                name: query_report(seen, marks.get(name), monitor.refreshed())
                for name, seen in [*monitor.queries.items()]
            },
            "counts": counts,
            "letters": [[*key, count] for key, count in [*self.dead.items()]],
            "cpu": usage.ru_utime + usage.ru_stime,
            "passes": monitor.passes,
        }


def main(folder: Path, memory: int | None = None) -> int:
    """Run the group of a folder; return 0 if it was stopped, and 3 if it cannot go on."""
    # Whatever libraries print must not get between the reports.
    reports = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    if memory is not None:  # a worker that takes more than twice its limit at once fails by itself
        resource.setrlimit(resource.RLIMIT_DATA, (2 * memory + (1 << 30),) * 2)
    try:
        worker = Worker(folder, read_plan(folder))
        _say(reports, {"ready": True})
        threading.Thread(target=_stop_at_end_of_input, args=(worker,), daemon=True).start()
        threading.Thread(target=_report, args=(worker, reports), daemon=True).start()
        worker.run()
        stopped = worker.monitor.is_stopping
        _say(reports, {"report": worker.report()})
        _say(reports, {"end": "stopped" if stopped else "finished"})
    except RspError as error:
        _say(reports, {"failure": error.message, "hint": error.hint, "kind": type(error).__name__})
        return 3
    return 0


def _say(reports: Any, message: dict[str, Any]) -> None:  # noqa: ANN401 - a text stream
    reports.write(json.dumps(message) + "\n")


def _report(worker: Worker, reports: Any) -> None:  # noqa: ANN401 - a text stream
    """Report now and then; a thread ends with its process."""
    while True:
        time.sleep(_REPORT_S)
        try:
            _say(reports, {"report": worker.report()})
        except (BrokenPipeError, ValueError):
            return
        except RuntimeError:  # a dictionary changed meanwhile: the next report has it
            continue


def _stop_at_end_of_input(worker: Worker) -> None:
    """Stop the run when the server closes the standard input, or is gone."""
    while os.read(0, 4096):
        pass
    worker.engine.stop()
    time.sleep(_GRACE_S)
    os._exit(4)  # what is not committed is answered again


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *map(int, sys.argv[2:3])))
