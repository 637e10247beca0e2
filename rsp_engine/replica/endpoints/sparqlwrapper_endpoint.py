"""A user's `SPARQLWrapper` as an endpoint.

The wrapper says what is sent: its address, parameters, headers, credentials and way of posting, as
they are at the time of each request. How it is sent is the same as for any endpoint over HTTP:
SPARQLWrapper itself knows no deadline for a whole answer and no bound of its size, and would take
the credentials along to wherever a server redirects it.
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
from rsp_engine.replica.endpoints.http import HttpConfig, HttpEndpoint
from rsp_engine.replica.sparql_client.client import Client
from rsp_engine.replica.sparql_client.credentials import Credentials
from rsp_engine.replica.sparql_client.faults import status_cause
from rsp_engine.replica.sparql_client.retry_decision import Act

if TYPE_CHECKING:
    import requests

    from rsp_engine.replica.pattern import RemotePattern
    from rsp_engine.replica.sparql_client.pages import Rows
    from rsp_engine.replica.sparql_client.request_meter import RequestMeter

__all__ = ["SparqlWrapperEndpoint"]

_UNAUTHORIZED = 401
_OURS = {"accept", "accept-encoding", "content-type", "content-length", "host"}


class SparqlWrapperEndpoint(HttpEndpoint):
    """Asks what a configured wrapper names. The wrapper stays as it is.

    The time that the wrapper allows for a request is kept, within that of the configuration.
    """

    def __init__(
        self, wrapper: SPARQLWrapper, pattern: RemotePattern, config: HttpConfig | None = None
    ) -> None:
        _refuse_altered(wrapper)
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
        self, text: str, spending: RequestMeter, *, is_divisible: bool, is_page: bool = False
    ) -> Rows | Act:
        reply = super()._ask(text, spending, is_divisible=is_divisible, is_page=is_page)
        if reply is Act.STOP and self._sender.is_challenged():
            # No fault, but the beginning of a digest; its answer is a request that counts.
            spending.faults -= Counter([status_cause(_UNAUTHORIZED)])
            return super()._ask(text, spending, is_divisible=is_divisible, is_page=is_page)
        return reply


class _Sender(Client):
    """Sends what a wrapper would send."""

    def __init__(self, wrapper: SPARQLWrapper, config: HttpConfig) -> None:
        super().__init__(wrapper.endpoint, Credentials(), config.answer_bytes, config.ca_file)
        self._wrapper = wrapper
        self._digest: _Digest | None = None

    def _post(self, query: str) -> requests.Response:
        wrapper = self._wrapper
        given = {n: v for n, v in wrapper.customHttpHeaders.items() if n.lower() not in _OURS}
        headers = {"User-Agent": wrapper.agent, **given}
        has_header = "authorization" in map(str.lower, given)
        parameters = [(n, value) for n, values in wrapper.parameters.items() for value in values]
        what: dict[str, Any] = {"data": [*parameters, ("query", query)]}
        if wrapper.requestMethod == POSTDIRECTLY:
            headers["Content-Type"] = "application/sparql-query"
            what = {"data": query.encode(), "params": parameters}
        return self._session.post(
            self._url,
            **what,
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
            # Digests of one user are equal, whatever they know.
            self._digest = self._digest if self._digest == fresh else fresh
            return self._digest
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        return Credentials(f"Basic {pair}")

    def is_challenged(self) -> bool:
        """Tell, once, whether the last request was refused for want of a digest."""
        return self._digest is not None and self._digest.is_challenged()


class _Digest(HTTPDigestAuth):
    """Remembers a challenge for the next request, instead of sending one that nobody counts."""

    _is_new = False

    def handle_401(self, r: requests.Response, **more: Any) -> requests.Response:  # noqa: ANN401
        kind, _, text = r.headers.get("WWW-Authenticate", "").partition(" ")
        if r.status_code != _UNAUTHORIZED or kind.lower() != "digest":
            return r
        challenge = parse_dict_header(text)
        is_stale = (challenge.get("stale") or "").lower() == "true"
        # A digest that was refused, and was fresh, is a wrong password.
        is_new = is_stale or "Authorization" not in r.request.headers
        if is_new and challenge.get("realm") is not None and challenge.get("nonce"):
            self._thread_local.chal = challenge
            self._thread_local.last_nonce = " "  # no nonce, but it says that one is known
            self._is_new = True
        return r

    def is_challenged(self) -> bool:
        was_new, self._is_new = self._is_new, False
        return was_new


def _refuse_altered(wrapper: SPARQLWrapper) -> None:
    """Refuse a wrapper that makes its requests in a way of its own: it would be passed over."""
    for name in ("_createRequest", "_query"):
        if getattr(type(wrapper), name) is not getattr(SPARQLWrapper, name):
            raise ServiceError(
                f"{type(wrapper).__name__} makes its own requests ({name}), which is not supported",
                "configure a SPARQLWrapper, or write an endpoint of your own",
            )
