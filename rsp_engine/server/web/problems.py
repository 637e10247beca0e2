"""Errors as problem documents (RFC 9457)."""

from __future__ import annotations

import errno
import http
import json
import logging
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from rsp_engine.errors import BindingError, QueryError, RspError, ServiceError
from rsp_engine.server.diagnostics import diagnostics_as_data
from rsp_engine.server.refusals import RefusedError

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["problem", "problem_of"]

_LOG = logging.getLogger("rsp")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TOO_MANY = (errno.EMFILE, errno.ENFILE)


def problem(status: int, detail: str, hint: str | None = None, **more: Any) -> Response:  # noqa: ANN401 - plain data
    """Return a problem document."""
    document = {
        "type": "about:blank",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **({} if hint is None else {"hint": hint}),
        **more,
    }
    headers = {"WWW-Authenticate": "Bearer"} if status == http.HTTPStatus.UNAUTHORIZED else None
    body = json.dumps(document, ensure_ascii=False).encode(errors="replace")
    return Response(body, status, headers, "application/problem+json")


async def problem_of(_request: Request, error: Exception) -> Response:
    """Return the problem document of an error."""
    match error:
        case QueryError():
            found = diagnostics_as_data(error.diagnostics, error.text, "error")
            return problem(422, error.message, error.hint, diagnostics=found)
        case RefusedError():
            return problem(error.status, error.message, error.hint, **error.details())
        case BindingError() | ServiceError():
            return problem(422, error.message, error.hint)
        case RspError():
            return problem(400, error.message, error.hint)
        case HTTPException():
            return _of_route(error)
        case OSError() if error.errno in _FULL:
            return problem(507, "there is no room on the disk", "make room, and send it again")
        case OSError() if error.errno in _TOO_MANY:
            return problem(503, "the server has too many open files", "let it have more: ulimit -n")
        case _:
            _LOG.error("a request failed", exc_info=error)
            return problem(500, "the server has failed: see its messages")


def _of_route(error: HTTPException) -> Response:
    hint = "GET /openapi.json describes the API"
    response = problem(error.status_code, error.detail, hint)
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response
