"""The webhook: a POST for each answer, with its id in a header; any status 2xx acknowledges it.

Requests go to the origin of the address alone: a redirect is a failure. Each is bounded in time as
a whole, also against a server that sends its response byte by byte.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rsp_engine.http_client.access import Credentials
from rsp_engine.http_client.client import HttpClient
from rsp_engine.http_client.faults import FaultError
from rsp_engine.io.sinks.delivery.courier import NotDelivered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.io.sinks.delivery.courier import Delivery
    from rsp_engine.io.sources.live.address import Address

__all__ = ["ID_HEADER", "HttpPost", "Webhook"]

ID_HEADER = "RSP-Delivery-Id"
_MOST_BYTES = 64 * 1024  # of a response, which nobody reads


class HttpPost:
    """Posts to one address, and tells why a post was not accepted."""

    def __init__(self, address: Address, timeout: float) -> None:
        """`timeout` bounds a whole exchange, in seconds."""
        self._address = address
        self._timeout = timeout
        self._client = HttpClient(
            address.url.removeprefix("sparql+"),
            Credentials(address.headers().get("Authorization")),
            _MOST_BYTES,
            address.variable("CA"),
            address.certificate(),
        )

    def send(self, body: bytes | Mapping[str, str], headers: Mapping[str, str]) -> None:
        """Send a body or a form; raise `NotDelivered` if it is not accepted."""
        try:
            self._client.send(body, headers, time.monotonic() + self._timeout)
        except FaultError as fault:
            raise NotDelivered(self._reason(fault), pause=fault.retry_after) from None

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._client.close()

    def _reason(self, fault: FaultError) -> str:
        names = self._address.variables
        match fault.status:
            case None if fault.cause == "TLS":
                return f"the server is not trusted ({names}_CA names a file of certificates)"
            case None:
                return f"the server cannot be reached: {fault.cause}"
            case 401 | 403:
                hint = f"check {names}_TOKEN, or ..._USER and ..._PASSWORD"
                return f"the server refuses the answer: {fault.cause} ({hint})"
            case status if 300 <= status < 400:
                return f"the server redirects ({status}), which is not followed"
            case _:
                return f"the server does not accept the answer: {fault.cause}"


class Webhook:
    """Posts answers, one at a time and in their order."""

    most = 1

    def __init__(self, address: Address, media_type: str, timeout: float) -> None:
        self._post = HttpPost(address, timeout)
        self._media_type = media_type

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Post the only delivery."""
        for delivery in deliveries:
            headers = {"Content-Type": self._media_type, ID_HEADER: delivery.id}
            self._post.send(delivery.body, headers)

    def close(self) -> None:
        """Close the connection."""
        self._post.close()
