"""The SPARQLWrapper endpoint: a user's configured `SPARQLWrapper`.

The wrapper defines what is sent: URL, parameters, headers, credentials and request method, as they
are at the time of each request. The HTTP endpoint sends it: SPARQLWrapper itself has no deadline
for a whole answer, no limit of its size, and sends the credentials to wherever a server redirects.
"""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from requests.auth import HTTPDigestAuth
from requests.utils import parse_dict_header
from SPARQLWrapper import SPARQLWrapper
from SPARQLWrapper.Wrapper import DIGEST, POSTDIRECTLY

from rsp_engine.errors import ServiceError
from rsp_engine.http_client.access import Credentials
from rsp_engine.http_client.client import HttpClient
from rsp_engine.http_client.faults import status_cause
from rsp_engine.replica.endpoints.http import HttpConfig, HttpEndpoint
from rsp_engine.replica.sparql_client.retry_decision import Act

if TYPE_CHECKING:
    from collections.abc import Sequence

    import requests

    from rsp_engine.replica.endpoints.endpoint import RequestMeter
    from rsp_engine.replica.pattern import RemotePattern
    from rsp_engine.replica.sparql_client.pages import Rows

__all__ = ["SparqlWrapperEndpoint"]

_UNAUTHORIZED = 401
_OWN_HEADERS = {"accept", "accept-encoding", "content-type", "content-length", "host"}


class SparqlWrapperEndpoint(HttpEndpoint):
    """The endpoint of a configured wrapper, which is never modified.

    A request may take the smaller of the timeouts of the wrapper and of the configuration.
    """

    def __init__(
        self, wrapper: SPARQLWrapper, pattern: RemotePattern, config: HttpConfig | None = None
    ) -> None:
        _refuse_overridden(wrapper)
        if config is None:
            config = HttpConfig(allowed=(wrapper.endpoint,))
        if wrapper.timeout:
            longest = min(config.timeout_ms, int(wrapper.timeout * 1000))
            config = replace(config, timeout_ms=longest)
        super().__init__(wrapper.endpoint, pattern, config, environment={})
        self._client.close()
        self._client = self._sender = _Sender(wrapper, config)

    def __repr__(self) -> str:
        return f"Wrapped({self._origin})"

    def _ask(
        self,
        text: str,
        names: Sequence[str],
        meter: RequestMeter,
        *,
        is_divisible: bool,
        is_page: bool = False,
    ) -> Rows | Act:
        reply = super()._ask(text, names, meter, is_divisible=is_divisible, is_page=is_page)
        if reply is Act.STOP and self._sender.is_challenged():
            # A challenge is the first step of digest authentication, not a fault. The answer to it
            # is a request of its own and counts.
            meter.faults -= Counter([status_cause(_UNAUTHORIZED)])
            return super()._ask(text, names, meter, is_divisible=is_divisible, is_page=is_page)
        return reply


class _Sender(HttpClient):
    """A client that sends the requests of a wrapper."""

    def __init__(self, wrapper: SPARQLWrapper, config: HttpConfig) -> None:
        super().__init__(wrapper.endpoint, Credentials(), config.answer_bytes, config.ca_file)
        self._wrapper = wrapper
        self._digest: _Digest | None = None

    def _post(self, query: str) -> requests.Response:
        wrapper = self._wrapper
        custom = {
            name: value
            for name, value in wrapper.customHttpHeaders.items()
            if name.lower() not in _OWN_HEADERS
        }
        headers = {"User-Agent": wrapper.agent, **custom}
        has_header = "authorization" in map(str.lower, custom)
        parameters = [(n, value) for n, values in wrapper.parameters.items() for value in values]
        content: dict[str, Any] = {"data": [*parameters, ("query", query)]}
        if wrapper.requestMethod == POSTDIRECTLY:
            headers["Content-Type"] = "application/sparql-query"
            content = {"data": query.encode(), "params": parameters}
        return self._session.post(
            self._url,
            **content,
            headers=headers,
            auth=Credentials() if has_header else self._auth(),
            stream=True,
            allow_redirects=False,
        )

    def _auth(self) -> Credentials | _Digest:
        user, password = self._wrapper.user, self._wrapper.passwd
        if not user or not password:
            return Credentials()
        if self._wrapper.http_auth == DIGEST:
            fresh = _Digest(user, password)
            # Equality compares user and password only, so the known challenge is kept.
            self._digest = self._digest if self._digest == fresh else fresh
            return self._digest
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        return Credentials(f"Basic {pair}")

    def is_challenged(self) -> bool:
        """Return, once, whether the last request was answered by a digest challenge."""
        return self._digest is not None and self._digest.is_challenged()


class _Digest(HTTPDigestAuth):
    """Keeps a challenge for the next request; `requests` would resend at once, uncounted."""

    _is_new = False

    def handle_401(self, r: requests.Response, **more: Any) -> requests.Response:  # noqa: ANN401
        kind, _, text = r.headers.get("WWW-Authenticate", "").partition(" ")
        if r.status_code != _UNAUTHORIZED or kind.lower() != "digest":
            return r
        challenge = parse_dict_header(text)
        is_stale = (challenge.get("stale") or "").lower() == "true"
        # A digest that was refused although its nonce was not stale means a wrong password.
        is_new = is_stale or "Authorization" not in r.request.headers
        if is_new and challenge.get("realm") is not None and challenge.get("nonce"):
            self._thread_local.chal = challenge
            self._thread_local.last_nonce = " "  # not a nonce: marks that a challenge is known
            self._is_new = True
        return r

    def is_challenged(self) -> bool:
        was_new, self._is_new = self._is_new, False
        return was_new


def _refuse_overridden(wrapper: SPARQLWrapper) -> None:
    """Raise `ServiceError` for a subclass that builds its own requests: they would be ignored."""
    for name in ("_createRequest", "_query"):
        if getattr(type(wrapper), name) is not getattr(SPARQLWrapper, name):
            raise ServiceError(
                f"{type(wrapper).__name__} makes its own requests ({name}), which is not supported",
                "configure a SPARQLWrapper, or write an endpoint of your own",
            )
