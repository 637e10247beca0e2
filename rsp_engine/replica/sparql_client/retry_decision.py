"""The decision after a fault: retry, ask for less, or stop.

A query that timed out is never retried: the server may still be working on it. A refused batch is
halved, since the request or its answer may have been too large. A request is retried if the server
asks to wait, or if the connection breaks. Any other fault needs an operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from rsp_engine.http_client.faults import BROKEN, ROWS_CUT, TOO_LARGE, TRUNCATED

if TYPE_CHECKING:
    from rsp_engine.http_client.faults import FaultError

__all__ = ["Act", "RetryDecision", "decide_retry"]

_LESS_STATUS = frozenset({400, 408, 413, 414, 431, 500, 504})
_LESS_CAUSES = frozenset({ROWS_CUT, TOO_LARGE})
_AGAIN_STATUS = frozenset({429, 500, 502, 503})
_AGAIN_CAUSES = frozenset({BROKEN, TRUNCATED})
_FIRST_WAIT_SECONDS = 0.1


class Act(Enum):
    """What to do next."""

    AGAIN = auto()
    LESS = auto()
    STOP = auto()


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """What to do next, and how many seconds to wait first."""

    act: Act
    wait: float = 0.0


def decide_retry(
    fault: FaultError, tries: int, retries: int, *, is_divisible: bool
) -> RetryDecision:
    """Decide on a request that has failed `tries` times.

    >>> from rsp_engine.http_client.faults import FaultError
    >>> decide_retry(FaultError("status 503", 503, 2.0), tries=1, retries=2, is_divisible=True)
    RetryDecision(act=<Act.AGAIN: 1>, wait=2.0)
    >>> decide_retry(FaultError("status 413", 413), tries=1, retries=2, is_divisible=True)
    RetryDecision(act=<Act.LESS: 2>, wait=0.0)
    >>> decide_retry(FaultError("time-out"), tries=1, retries=2, is_divisible=True)
    RetryDecision(act=<Act.STOP: 3>, wait=0.0)
    """
    is_less = fault.status in _LESS_STATUS or fault.cause in _LESS_CAUSES
    is_again = fault.status in _AGAIN_STATUS or fault.cause in _AGAIN_CAUSES
    if is_less and is_divisible:
        return RetryDecision(Act.LESS)
    if is_again and tries <= retries:
        wait = fault.retry_after
        return RetryDecision(
            Act.AGAIN, _FIRST_WAIT_SECONDS * 2 ** (tries - 1) if wait is None else wait
        )
    # A single key that is refused is skipped; the others may still be answered.
    return RetryDecision(Act.LESS if is_less else Act.STOP)
