"""Sinks by URL with an outbox in memory, opened as a run opens them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rsp_engine.io.sinks.delivery.schemes import plan_sink
from rsp_engine.io.sources.spec import read_spec
from rsp_engine.model.answers import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sinks.delivery.message_sink import MessageSink
    from rsp_engine.model.answers import Answer

__all__ = ["opened", "sent"]


@contextmanager
def opened(url: str, *answers: Answer) -> Iterator[MessageSink]:
    """Open a sink, and write answers to it."""
    is_graph = any(isinstance(each.content, Graph) for each in answers)
    sink = plan_sink(read_spec(url), "jsonl", ["CONSTRUCT" if is_graph else "SELECT"]).open()
    try:
        for each in answers:
            sink.write(each)
        yield sink
    finally:
        sink.close()


def sent(url: str, *answers: Answer, patience: float = 20) -> MessageSink:
    """Write answers to a sink, wait until they are delivered, and close it."""
    from rsp_engine.io.sinks.delivery.message_sink import drain

    with opened(url, *answers) as sink:
        drain([sink], patience)
    return sink
