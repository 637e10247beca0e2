"""Service bindings: from what a user binds a SERVICE to, to a function that opens its endpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pyoxigraph as ox

from rsp_engine.errors import ServiceError
from rsp_engine.replica.change_signal import ModifiedPattern
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint
from rsp_engine.replica.endpoints.recording import RecordingEndpoint
from rsp_engine.replica.sparql_client.origins import origin_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from SPARQLWrapper import SPARQLWrapper

    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.service.service_plan import Connect, ServicePlan
    from rsp_engine.replica.endpoints.endpoint import Endpoint
    from rsp_engine.replica.pattern import RemotePattern

    Bindable = str | ox.Store | ox.Dataset | SPARQLWrapper | Endpoint | Callable[..., Endpoint]

__all__ = ["connect", "record_services"]


def connect(endpoint: Bindable) -> Connect:
    """Return a function that opens the endpoint; it sends nothing before the first request.

    Requests to a URL stay within its origin. A store is queried in its current state. A
    `SPARQLWrapper` is used as it is configured. An object with `fetch` and `snapshot` is an
    endpoint already, and a callable makes one from a `RemotePattern`.
    """
    if isinstance(endpoint, str):
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


def record_services(plan: PhysicalPlan, recordings: list[RecordingEndpoint]) -> PhysicalPlan:
    """Return a plan that records the calls of its services; add each recording to the list."""

    def record(service: ServicePlan) -> ServicePlan:
        def connect_recording(pattern: RemotePattern) -> RecordingEndpoint:
            recordings.append(RecordingEndpoint(service.connect(pattern)))
            return recordings[-1]

        return replace(service, connect=connect_recording)

    return replace(plan, services=tuple(map(record, plan.services)))


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
