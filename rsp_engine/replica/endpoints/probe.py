"""A probe of an endpoint: one request, sent as a run would send it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from rsp_engine.errors import ServiceError
from rsp_engine.http_client.access import credentials_of, origin_of, variables_of
from rsp_engine.http_client.client import HttpClient
from rsp_engine.http_client.faults import FaultError
from rsp_engine.monitor.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["probe_endpoint"]

_TIMEOUT_S = 10
_MOST_BYTES = 64 * 1024


def probe_endpoint(url: str, environment: Mapping[str, str] = os.environ) -> str:
    """Send `ASK {}`; return the address and the latency. Raise `ServiceError` if it fails."""
    origin, address = origin_of(url), without_secrets(url)
    client = HttpClient(url, credentials_of(variables_of(origin), environment), _MOST_BYTES)
    begin = time.monotonic()
    try:
        client.ask("ASK {}", begin + _TIMEOUT_S)
    except FaultError as fault:
        raise ServiceError(f"{address} does not answer: {fault.cause}") from None
    finally:
        client.close()
    return f"{address} answers in {(time.monotonic() - begin) * 1000:.0f} ms"
