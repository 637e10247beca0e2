"""The credentials of a service: read from the environment, sent in a header, never shown.

Each service has its own variables, so that the token of one is never sent to another:
`RSP_SERVICE_DATA_EXAMPLE_ORG_TOKEN`, or `..._USER` and `..._PASSWORD`, for `data.example.org`. A
port in the URL follows the host. The configuration can set another prefix.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from requests.auth import AuthBase

from rsp_engine.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from requests import PreparedRequest

    from rsp_engine.replica.sparql_client.origins import Origin

__all__ = ["Credentials", "credentials_of", "variables_of"]


class Credentials(AuthBase):
    """The Authorization header of a service, or none."""

    def __init__(self, header: str | None = None) -> None:
        self._header = header

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        if self._header is not None:
            request.headers["Authorization"] = self._header
        return request

    def __repr__(self) -> str:
        return f"Credentials({'none' if self._header is None else 'redacted'})"

    def __reduce__(self) -> str:
        raise TypeError("credentials are not saved")


def variables_of(origin: Origin) -> str:
    """Return the prefix of the environment variables of a service.

    >>> from rsp_engine.replica.sparql_client.origins import origin_of
    >>> variables_of(origin_of("http://data.example.org:8890/sparql"))
    'RSP_SERVICE_DATA_EXAMPLE_ORG_8890'
    """
    host = str(origin).split("://", 1)[1]
    return "RSP_SERVICE_" + re.sub(r"[^A-Z0-9]+", "_", host.upper()).strip("_")


def credentials_of(prefix: str, environment: Mapping[str, str]) -> Credentials:
    """Read the credentials of a service from its environment variables, if they are set.

    >>> credentials_of("RSP_SERVICE_E_ORG", {"RSP_SERVICE_E_ORG_TOKEN": "secret"})
    Credentials(redacted)
    """
    user, password, token = (
        environment.get(f"{prefix}_{name}") for name in ("USER", "PASSWORD", "TOKEN")
    )
    if token is not None:
        if user is not None or password is not None:
            raise ServiceError(
                f"{prefix}_TOKEN and {prefix}_USER are both set", "unset one of them"
            )
        # A header is one line of visible characters; the library would show others in its error.
        if not re.fullmatch(r"[!-~]+", token):
            raise ServiceError(f"{prefix}_TOKEN contains characters that no token has")
        return Credentials(f"Bearer {token}")
    if user is None and password is None:
        return Credentials()
    if user is None or password is None:
        raise ServiceError(f"{prefix}_USER and {prefix}_PASSWORD must be set together")
    if ":" in user:
        raise ServiceError(f"{prefix}_USER must not contain a colon")
    pair = f"{user}:{password}".encode("utf-8", "surrogateescape")
    return Credentials(f"Basic {base64.b64encode(pair).decode()}")
