"""What streams are bound to, and whether that fits the queries."""

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

__all__ = ["check_bound_streams", "check_repeatable", "close_sources", "open_sources", "place_of"]


def open_sources(source: str | ElementSource | Iterable[tuple[int, str]]) -> ElementSource:
    """Return a source of what a user binds."""
    if isinstance(source, str):
        return open_source(source)
    if hasattr(source, "blank_node_scope"):
        return cast("ElementSource", source)
    return MemorySource(source)


def place_of(bound: str | ElementSource | Iterable[tuple[int, str]], source: ElementSource) -> str:
    """Return what tells a source from others, as a checkpoint keeps it: without secrets."""
    if isinstance(bound, str) and source.name != (place := read_spec(bound).place):
        return fingerprint(place)
    return source.name


def check_bound_streams(plans: Sequence[PhysicalPlan], bound: Collection[str]) -> None:
    """Raise what is wrong if a stream has no source, or a source no use."""
    if not plans:
        raise BindingError("no query is registered")
    read = {scan.stream for plan in plans for scan in plan.scans}
    made_here = {plan.feeds for plan in plans}
    for stream in sorted(read - set(bound) - made_here):
        hint = f"bind it: --stream {stream}=SOURCE"
        raise BindingError(f"stream <{stream}> has no source", hint)
    for stream in sorted(set(bound) - read):
        hint = f"the queries read {', '.join(f'<{name}>' for name in sorted(read))}"
        raise BindingError(f"no query reads stream <{stream}>", hint)
    for stream in sorted(set(bound) & made_here):
        raise BindingError(f"stream <{stream}> is the answer of a query: it needs no source")


def check_repeatable(
    sources: Mapping[str, Sequence[ElementSource]], *, is_kept: bool, is_paced: bool
) -> None:
    """Raise what is wrong if sources cannot be read again after a crash, or have their own pace."""
    found = [source for bound in sources.values() for source in bound]
    if is_kept and any(source.name == "-" for source in found):
        hint = "save it to a file first, or leave the checkpoint out"
        raise BindingError("the standard input cannot be read again after a crash", hint)
    if is_paced and any(isinstance(source, LiveSource) for source in found):
        raise BindingError("a live stream has its own speed", "leave out the other")


def close_sources(steps: list[Step], answers: Iterator[Answer]) -> Generator[Answer]:
    """Yield the answers, and give back what the endpoints of services hold."""
    try:
        yield from answers
    finally:
        for step in steps:
            step.close()
