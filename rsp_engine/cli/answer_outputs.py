"""The outputs of a run: standard output, files and folders, and sinks by URL.

An output is written as sources are: a place, and its options after a question mark.
"""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from rsp_engine.errors import BindingError, RspError, UndeliveredError
from rsp_engine.io.sinks.destinations import is_sink_url
from rsp_engine.io.sinks.format import FORMATS, checked_format, open_sink
from rsp_engine.io.sources.spec import Spec, nearest, read_spec
from rsp_engine.model.option import milliseconds
from rsp_engine.model.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack

    from rsp_engine.cli.flags import OutputFlags
    from rsp_engine.drivers.checkpoint.commits import RewindableOutput
    from rsp_engine.io.sinks.delivery.message_sink import MessageSink
    from rsp_engine.io.sinks.delivery.schemes import SinkPlan
    from rsp_engine.io.sinks.format import ContentForm, Sink
    from rsp_engine.model.answers import Answer
    from rsp_engine.monitor.run_monitor import RunMonitor
    from rsp_engine.options import TimeStyle

__all__ = ["AnswerOutputs"]

_ONE_TABLE = ("csv", "tsv", "sparql-json", "sparql-xml")
"""Formats of files that hold the answers of one query only."""
_OPTIONS = ("format", "times")
"""The options of files."""


class _File(NamedTuple):
    """An output that is no sink by URL, as it is opened."""

    path: str | None
    format: str
    times: TimeStyle


class AnswerOutputs:
    """The outputs of a run. Wrong ones are refused on construction, before anything runs."""

    def __init__(
        self, flags: OutputFlags, forms: Sequence[ContentForm], allowed: Sequence[str]
    ) -> None:
        self._forms = forms
        self._patience = milliseconds(flags.delivery_wait) / 1000
        texts = flags.output or ["-"]
        for number, text in enumerate(texts):
            if text in texts[:number]:
                raise BindingError(f"--output {text} is named twice", "remove one of them")
        self._planned = [self._plan(text, flags, allowed) for text in texts]
        self.sinks: list[MessageSink] = []
        """The sinks by URL, once they are open."""
        self._outputs: list[Sink] = []
        self._is_kept = False

    def _plan(self, text: str, flags: OutputFlags, allowed: Sequence[str]) -> _File | SinkPlan:
        if is_sink_url(text):
            # Most runs have no such sink.
            from rsp_engine.io.sinks.delivery.schemes import plan_sink

            spec = read_spec(text)
            return plan_sink(spec, flags.output_format, self._forms, flags.times, allowed)
        spec = read_spec(text) if text else Spec(text)
        for option in spec.options:
            if option not in _OPTIONS:
                hint = nearest(option, _OPTIONS) or f"the options are: {', '.join(_OPTIONS)}"
                raise BindingError(f"--output {text}: there is no option {option}", hint)
        name = spec.options.get("format", flags.output_format)
        if len(self._forms) > 1 and name in _ONE_TABLE:
            hint = "use jsonl, or run each query separately"
            raise BindingError(f"{name} holds the answers of one query", hint)
        if name in FORMATS:
            checked_format(name, self._forms)
        times = spec.choice("times", (flags.times, *{"ms", "iso"} - {flags.times}))
        return _File(spec.place, name, cast("TimeStyle", times))

    @property
    def paths(self) -> list[tuple[str, str | None]]:
        """The paths that are written to, each with its flag."""
        return [("--output", each.path) for each in self._planned if isinstance(each, _File)]

    def open(
        self, opened: ExitStack, checkpoint: str | Path | None, monitor: RunMonitor | None
    ) -> list[RewindableOutput]:
        """Open the outputs, until `opened` is closed; return those that the run must know."""
        self._is_kept = checkpoint is not None
        known: list[RewindableOutput] = []
        for number, planned in enumerate(self._planned):
            output: Sink
            if isinstance(planned, _File):
                output = open_sink(
                    planned.format,
                    planned.path,
                    self._forms[0],
                    keep=self._is_kept,
                    times=planned.times,
                )
                if self._is_kept:
                    known.append(output)
            else:
                output = self._sink(number, planned, checkpoint)
                known.append(output)
            self._outputs.append(opened.enter_context(closing(output)))
        if monitor is not None:
            monitor.sinks = self.sinks
        return known

    def _sink(self, number: int, plan: SinkPlan, checkpoint: str | Path | None) -> MessageSink:
        outbox = None
        if checkpoint is not None:
            from rsp_engine.drivers.checkpoint.outbox import SpooledOutbox

            digest = hashlib.sha256(plan.kind.encode()).hexdigest()[:12]
            outbox = SpooledOutbox(Path(checkpoint) / "outbox" / f"{number}-{digest}", plan.room)
        self.sinks.append(plan.open(outbox))
        return self.sinks[-1]

    def write_all(self, answers: Iterator[Answer]) -> Iterator[Answer]:
        """Write and yield the answers; return when they are delivered, or nothing moves.

        If the run fails, or the reader of standard output exits, what is committed is delivered
        nevertheless.

        Raises:
            UndeliveredError: If some are not delivered.
        """
        try:
            for answer in answers:
                for output in self._outputs:
                    output.write(answer)
                yield answer
        except (RspError, BrokenPipeError):
            self._drain()
            raise
        self._drain()
        left = [sink.status for sink in self.sinks if sink.status.waiting]
        if left:
            count = quantity(left[0].waiting, "answer was", "answers were")
            trouble = left[0].trouble or f"no acknowledgement in {self._patience:g} s"
            hint = "they are lost; with --checkpoint FOLDER, the next run delivers them"
            if self._is_kept:
                hint = "run the same command again to deliver them"
            raise UndeliveredError(f"{count} not delivered to {left[0].name}: {trouble}", hint)

    def _drain(self) -> None:
        if self.sinks:
            from rsp_engine.io.sinks.delivery.message_sink import drain

            drain(self.sinks, self._patience)
