"""Bindings: the sources of streams and the endpoints of services that users bind.

Bound sources are opened, and checked against the queries; live ones receive messages while the
answers of a run are consumed.
"""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import pyoxigraph as ox

from rsp_engine.errors import BindingError, ServiceError
from rsp_engine.http_client.access import origin_of
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.live.source import LiveSource
from rsp_engine.io.sources.memory import MemorySource
from rsp_engine.io.sources.spec import read_spec
from rsp_engine.monitor.redaction import fingerprint
from rsp_engine.replica.change_signal import ModifiedPattern
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint
from rsp_engine.replica.endpoints.recording import RecordingEndpoint

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Generator,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from SPARQLWrapper import SPARQLWrapper

    from rsp_engine.evaluators.physical_plan import Connect, PhysicalPlan, ServicePlan
    from rsp_engine.evaluators.service.shared_services import SharedServices
    from rsp_engine.evaluators.step import Step
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.model.answers import Answer
    from rsp_engine.replica.endpoints.endpoint import Endpoint
    from rsp_engine.replica.pattern import RemotePattern

    Bindable = str | ox.Store | ox.Dataset | SPARQLWrapper | Endpoint | Callable[..., Endpoint]

__all__ = [
    "check_bound_streams",
    "check_repeatable",
    "close_steps_after",
    "connect",
    "is_file",
    "is_frame",
    "live_sources",
    "open_bound",
    "record_services",
    "source_identity",
]


def open_bound(source: str | ElementSource | Iterable[tuple[int, str]]) -> ElementSource:
    """Open what a user binds a stream to: a path or URL, a source, or timestamped Turtle texts."""
    if isinstance(source, str):
        return open_source(source)
    if hasattr(source, "blank_node_scope"):
        return cast("ElementSource", source)
    return MemorySource(source)


def is_frame(source: object) -> bool:
    """Return whether a source is a DataFrame of Spark."""
    return type(source).__module__.startswith("pyspark.sql.")


def source_identity(bound: object, source: ElementSource) -> str:
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
    unread = sorted(set(bound) - read)
    unbound = sorted(read - set(bound) - derived)
    if unread:
        hint = f"the queries read {', '.join(f'<{name}>' for name in sorted(read))}"
        if unbound:
            hint += f"; bind it: --stream {unbound[0]}=SOURCE"
        raise BindingError(f"no query reads stream <{unread[0]}>", hint)
    if unbound:
        hint = f"bind it: --stream {unbound[0]}=SOURCE"
        raise BindingError(f"stream <{unbound[0]}> has no source", hint)
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


T = TypeVar("T")


def live_sources(
    sources: Sequence[LiveSource], checkpoint: str | Path | None, answers: Iterator[T]
) -> Generator[T]:
    """Yield the answers, with the sources started before and closed after.

    Spools are stored in the checkpoint, or in a temporary folder if there is none.
    """
    with ExitStack() as opened:
        if checkpoint is None and sources:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="rsp-")))
        else:
            folder = Path(checkpoint or ".")
        for number, source in enumerate(sources):
            opened.callback(source.close)
            name = hashlib.sha256(source.name.encode()).hexdigest()[:12]
            spool = folder / "spool" / f"{number}-{name}"
            source.begin(spool, is_kept=checkpoint is not None)
        yield from answers


def is_file(address: str) -> bool:
    """Return whether the address of a service is a file, in place of a URL."""
    if "://" in address:
        return False
    # Most services have a URL.
    from rsp_engine.replica.endpoints.file_endpoint import is_file_endpoint

    return is_file_endpoint(address)


def connect(endpoint: Bindable) -> Connect:
    """Return a function that opens the endpoint; it sends nothing before the first request.

    Requests to a URL stay within its origin. A file is a dataset or a history of values. A store is
    queried in its current state. A `SPARQLWrapper` is used as it is configured. An object with
    `fetch` and `snapshot` is an endpoint already, and a callable makes one from a `RemotePattern`.
    """
    if isinstance(endpoint, str):
        if is_file(endpoint):
            from rsp_engine.replica.endpoints.file_endpoint import file_endpoint

            return file_endpoint(endpoint)
        origin_of(endpoint)
        return lambda pattern: _over_http(endpoint, pattern)
    if isinstance(endpoint, ox.Store | ox.Dataset):
        return lambda pattern: InProcessEndpoint(pattern, endpoint)
    if any(kind.__module__.startswith("SPARQLWrapper") for kind in type(endpoint).__mro__):
        return lambda pattern: _wrapped(cast("SPARQLWrapper", endpoint), pattern)
    is_endpoint = hasattr(endpoint, "fetch") and hasattr(endpoint, "snapshot")
    if is_endpoint and not isinstance(endpoint, type):
        return lambda pattern: _endpoint_for(cast("Endpoint", endpoint), pattern)
    if callable(endpoint):
        return cast("Connect", endpoint)
    raise ServiceError(
        f"a service cannot be bound to {type(endpoint).__name__}",
        "bind it to a URL, a pyoxigraph Store, a SPARQLWrapper, or an endpoint of your own",
    )


def record_services(
    plans: Sequence[PhysicalPlan],
    recordings: list[RecordingEndpoint],
    services: SharedServices,
) -> list[PhysicalPlan]:
    """Return plans that record the calls of their services; add each recording to the list."""
    recorded: dict[tuple[str, int], Connect] = {}

    def record(plan: ServicePlan) -> ServicePlan:
        service = plan.pattern.service
        budget = services.budgets.get(service)

        def connect_recording(pattern: RemotePattern) -> RecordingEndpoint:
            # Stamps of a change signal are no keys of a budget.
            is_paid = budget is not None and not isinstance(pattern, ModifiedPattern)
            ledger = budget.ledger if budget is not None and is_paid else None
            recordings.append(RecordingEndpoint(plan.connect(pattern), ledger=ledger))
            return recordings[-1]

        # Clauses share a replica only if they connect in the same way.
        connect = recorded.setdefault((service, id(plan.connect)), connect_recording)
        return replace(plan, connect=connect)

    return [replace(plan, services=tuple(map(record, plan.services))) for plan in plans]


def _endpoint_for(endpoint: Endpoint, pattern: RemotePattern) -> Endpoint:
    """Return the endpoint itself, or its endpoint of modification stamps for a change signal."""
    if not isinstance(pattern, ModifiedPattern):
        return endpoint
    modified = getattr(endpoint, "modified", None)
    if modified is None:
        raise ServiceError(
            f"{type(endpoint).__name__} cannot report changes",
            "give it a function `modified`, which returns the endpoint of the stamps of keys",
        )
    return cast("Endpoint", modified())


def _over_http(url: str, pattern: RemotePattern) -> Endpoint:
    from rsp_engine.replica.endpoints.http import HttpConfig, HttpEndpoint

    return HttpEndpoint(url, pattern, HttpConfig(allowed=(url,)))


def _wrapped(wrapper: SPARQLWrapper, pattern: RemotePattern) -> Endpoint:
    from rsp_engine.replica.endpoints.sparqlwrapper_endpoint import SparqlWrapperEndpoint

    return SparqlWrapperEndpoint(wrapper, pattern)
