"""Refusals: requests that are not carried out, with the reason and the status of HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rsp_engine.errors import RspError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ConflictError",
    "ForbiddenError",
    "MalformedError",
    "NotFoundError",
    "RefusedError",
    "StoppingError",
    "TooLargeError",
    "UnfitElementsError",
    "UnsupportedTypeError",
]


class RefusedError(RspError):
    """A request is not carried out."""

    status = 400

    def details(self) -> dict[str, Any]:
        """Return what the problem document says in addition."""
        return {}


class MalformedError(RefusedError):
    """A request is not of the form that it must have."""


class ForbiddenError(RefusedError):
    """A request names something that it may not open."""

    status = 403


class NotFoundError(RefusedError):
    """There is no such stream or query."""

    status = 404


class ConflictError(RefusedError):
    """A request does not fit the present state."""

    status = 409


class StoppingError(RefusedError):
    """The server is stopping."""

    status = 503


class TooLargeError(RefusedError):
    """The body of a request is too large."""

    status = 413


class UnsupportedTypeError(RefusedError):
    """The body of a request has a type that is not read."""

    status = 415


class UnfitElementsError(RefusedError):
    """Pushed elements cannot be read; nothing of the request is taken."""

    status = 422

    def __init__(self, message: str, hint: str, elements: Sequence[dict[str, Any]]) -> None:
        super().__init__(message, hint)
        self._elements = elements

    def details(self) -> dict[str, Any]:
        return {"elements": self._elements}
