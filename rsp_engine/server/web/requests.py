"""Parameters and bodies of requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rsp_engine.server.refusals import MalformedError, TooLargeError, UnsupportedTypeError

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["json_body", "parameter", "whole_number"]


async def json_body(request: Request, most: int) -> Any:  # noqa: ANN401 - plain data
    """Return the JSON of a body; refuse one that is larger than `most` bytes.

    Other types are refused: pages of other servers can send them without being asked.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedTypeError("the body must be application/json", "set Content-Type")
    body = await request.body()
    if len(body) > most:
        raise TooLargeError(f"the body has more than {most} bytes", "a query this long is data")
    try:
        value = json.loads(body.decode())
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise MalformedError("the body is not UTF-8") from None
    except UnicodeEncodeError:
        raise MalformedError("the body holds half a character: a lone surrogate") from None
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"the body is not JSON: {error}") from None
    return value


def whole_number(
    request: Request, name: str, default: int, *, least: int = 0, most: int = 1 << 60
) -> int:
    """Return a parameter that is a whole number."""
    text = request.query_params.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= 18
    if not is_number or not least <= int(text) <= most:
        raise MalformedError(f"{name} must be a whole number from {least} to {most}")
    return int(text)


def parameter(request: Request, name: str, known: tuple[str, ...]) -> str:
    """Return a parameter that is one of several words; the first is the default."""
    value = request.query_params.get(name, known[0])
    if value not in known:
        raise MalformedError(f"{name} cannot be {value[:80]!r}", f"it is {' or '.join(known)}")
    return value
