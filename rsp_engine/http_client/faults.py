"""The causes of failed requests.

They are counted in `Fetched.faults` and appear in reports and saved states, so the texts are
stable. An HTTP status has its number as cause: `status 503`.
"""

from __future__ import annotations

__all__ = [
    "BROKEN",
    "CHANGED",
    "ENCODING",
    "INTERRUPTED",
    "NOT_JSON",
    "NOT_RESULTS",
    "NO_REQUESTS",
    "NO_TIME",
    "OFFSET_IGNORED",
    "REDIRECT",
    "REFUSED",
    "ROWS_CUT",
    "TIME_OUT",
    "TLS",
    "TOO_LARGE",
    "TRUNCATED",
    "UNKNOWN_HOST",
    "UNREACHABLE",
    "FaultError",
    "status_cause",
]

REFUSED = "refused connection"
UNKNOWN_HOST = "unknown host"
UNREACHABLE = "unreachable"
TLS = "TLS"
BROKEN = "broken connection"
TIME_OUT = "time-out"
NO_TIME = "no time left"
NO_REQUESTS = "no requests left"
REDIRECT = "redirect"
ENCODING = "unknown encoding"
TOO_LARGE = "too large"
TRUNCATED = "truncated"
NOT_JSON = "not JSON"
NOT_RESULTS = "not SPARQL results"
ROWS_CUT = "rows cut"
CHANGED = "changed between pages"
OFFSET_IGNORED = "OFFSET ignored"
INTERRUPTED = "interrupted"


class FaultError(Exception):
    """A request without a complete answer. It stays within `replica`: endpoints catch and count it.

    `status` is the HTTP status, if that is the cause, and `retry_after` the wait in seconds that
    the server requests.
    """

    def __init__(
        self, cause: str, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(cause)
        self.cause = cause
        self.status = status
        self.retry_after = retry_after


def status_cause(status: int) -> str:
    """Return the cause of an HTTP status.

    >>> status_cause(503)
    'status 503'
    """
    return f"status {status}"
