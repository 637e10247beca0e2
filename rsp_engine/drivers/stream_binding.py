"""Stream bindings: opening the sources that users bind, and checking them against the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rsp_engine.errors import BindingError
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.live.source import LiveSource
from rsp_engine.io.sources.memory import MemorySource
from rsp_engine.io.sources.spec import read_spec
from rsp_engine.monitor.redaction import fingerprint

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.step import Step
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.model.answers import Answer

__all__ = [
    "check_bound_streams",
    "check_repeatable",
    "close_steps_after",
    "open_bound",
    "source_identity",
]


def open_bound(source: str | ElementSource | Iterable[tuple[int, str]]) -> ElementSource:
    """Open what a user binds a stream to: a path or URL, a source, or timestamped Turtle texts."""
    if isinstance(source, str):
        return open_source(source)
    if hasattr(source, "blank_node_scope"):
        return cast("ElementSource", source)
    return MemorySource(source)


def source_identity(
    bound: str | ElementSource | Iterable[tuple[int, str]], source: ElementSource
) -> str:
    """Return the identity of a source as a checkpoint saves it: without secrets."""
    if isinstance(bound, str) and source.name != (address := read_spec(bound).place):
        return fingerprint(address)  # the name of the source hides a secret of its address
    return source.name


def check_bound_streams(plans: Sequence[PhysicalPlan], bound: Collection[str]) -> None:
    """Raise unless every stream that queries read is bound or derived, and no other is bound."""
    if not plans:
        raise BindingError("no query is registered")
    read = {scan.stream for plan in plans for scan in plan.scans}
    derived = {plan.feeds for plan in plans}
    for stream in sorted(read - set(bound) - derived):
        hint = f"bind it: --stream {stream}=SOURCE"
        raise BindingError(f"stream <{stream}> has no source", hint)
    for stream in sorted(set(bound) - read):
        hint = f"the queries read {', '.join(f'<{name}>' for name in sorted(read))}"
        raise BindingError(f"no query reads stream <{stream}>", hint)
    for stream in sorted(set(bound) & derived):
        raise BindingError(f"stream <{stream}> is the answer of a query: it needs no source")


def check_repeatable(
    sources: Mapping[str, Sequence[ElementSource]], *, has_checkpoint: bool, is_paced: bool
) -> None:
    """Raise if a source cannot be replayed from a checkpoint, or cannot be paced."""
    opened = [source for bound in sources.values() for source in bound]
    if has_checkpoint and any(source.name == "-" for source in opened):
        hint = "save it to a file first, or run without a checkpoint"
        raise BindingError("the standard input cannot be read again after a crash", hint)
    if is_paced and any(isinstance(source, LiveSource) for source in opened):
        raise BindingError("a live stream has its own speed", "leave out the other")


def close_steps_after(steps: list[Step], answers: Iterator[Answer]) -> Generator[Answer]:
    """Yield the answers, then close the steps and with them the endpoints of their services."""
    try:
        yield from answers
    finally:
        for step in steps:
            step.close()
