"""The recording endpoint: a log of calls, so that recovery replays them without requests.

Answers are logged before the output that depends on them. After a crash, the same evaluations run
again: they make the same calls in the same order and get the logged answers, at no request. Calls
that were not logged go to the endpoint.

If the service has a budget, a fetch is logged before it is sent. A crash may leave it without
answers: then it is not sent again, since the budget may have been used for it, and its keys count
as unanswered.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.errors import StateError
from rsp_engine.http_client.faults import INTERRUPTED
from rsp_engine.model.terms.ntriples import read_terms
from rsp_engine.replica.endpoints.endpoint import FetchResult
from rsp_engine.replica.store.terms import key_text, solution_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rsp_engine.replica.endpoints.endpoint import Endpoint, Limits
    from rsp_engine.replica.key_ledger import KeyLedger
    from rsp_engine.replica.pattern import Key

__all__ = ["RecordedCall", "RecordedCalls", "RecordingEndpoint", "fetched_from", "fetched_state"]

RecordedCall = dict[str, Any]
"""The arguments and the result of a call, as plain data."""


class RecordedCalls(NamedTuple):
    """The calls since the last `take`: how many were replayed, and the new ones after them.

    With `completes`, the first of the new ones completes the last one that was taken before.
    """

    replayed: int
    calls: list[RecordedCall]
    completes: bool = False


class RecordingEndpoint:
    """Replays logged calls, then calls another endpoint and logs the results.

    `calls` are the logged calls of an interrupted run, in order. A call matches the log if its
    instant and its keys are equal. The keys of fetches are charged to a `ledger`, if there is one,
    by the caller; `before_fetch` then logs a fetch.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        calls: Iterable[Mapping[str, Any]] = (),
        ledger: KeyLedger | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._ledger = ledger
        self.before_fetch: Callable[[], None] = lambda: None
        """Called when a fetch is about to be sent that the budget of a service pays for."""
        self._is_open = False
        self._log = deque(calls)
        self._replay_count = 0
        self._new: list[RecordedCall] = []
        self._is_strict = True

    def replay(self, calls: Iterable[Mapping[str, Any]], *, is_strict: bool = True) -> None:
        """Replay these calls next.

        If `is_strict`, a call that does not match raises `StateError`. Otherwise it ends the
        replay: it goes to the endpoint, and so do all calls after it.
        """
        self._log = deque(calls)
        self._is_strict = is_strict

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        call: RecordedCall = {"now": now, "keys": [key_text(key) for key in keys]}
        if self._is_logged(call):
            return self._replay_next(call)
        if self._ledger is not None:
            keys = keys[: max(len(keys) - self._ledger.excess(now), 0)]
            self._new.append({**call, "is_open": True})
            self.before_fetch()
            self._is_open = not self._new
            self._new = self._new[:-1]
        start = time.monotonic()
        fetched = self._endpoint.fetch(keys, limits, now)
        if fetched.elapsed is None:
            fetched = replace(fetched, elapsed=round((time.monotonic() - start) * 1000, 3))
        return self._record(call, fetched)

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        call: RecordedCall = {"now": now, "keys": None}
        if self._is_logged(call):
            return self._replay_next(call)
        return self._record(call, self._endpoint.snapshot(limits, now))

    def _is_logged(self, call: RecordedCall) -> bool:
        if self._log and not self._is_strict and not _matches(self._log[0], call):
            self._charge_unused()
            self._log.clear()
        return bool(self._log)

    def _charge_unused(self) -> None:
        """Charge the logged fetches that are not repeated: they were sent nevertheless."""
        if self._ledger is not None:
            for logged in self._log:
                self._ledger.charge(logged["now"], len(logged["keys"] or ()))

    def _replay_next(self, call: RecordedCall) -> FetchResult:
        """Return the next logged answer; raise `StateError` if the log is of another run."""
        logged = self._log.popleft()
        if not _matches(logged, call):
            raise StateError(
                f"the recorded answers are those of another run: it asked at "
                f"{logged.get('now')}, where this one asks at {call['now']}",
                "remove the recorded answers, and start again",
            )
        self._replay_count += 1
        if logged.get("is_open"):
            return FetchResult({}, 1, {INTERRUPTED: 1})
        return fetched_from(logged)

    def _record(self, call: RecordedCall, fetched: FetchResult) -> FetchResult:
        self._new.append({**call, **fetched_state(fetched)})
        return fetched

    def take(self) -> RecordedCalls:
        """Return the calls since the last `take`; the new ones are to be logged."""
        taken = RecordedCalls(self._replay_count, self._new, self._is_open)
        self._replay_count, self._new, self._is_open = 0, [], False
        return taken

    def waiting(self) -> list[RecordedCall]:
        """Return the calls not replayed yet."""
        return [dict(call) for call in self._log]

    def close(self) -> None:
        self._endpoint.close()


def _matches(logged: Mapping[str, Any], call: RecordedCall) -> bool:
    return all(logged.get(name) == value for name, value in call.items())


def fetched_state(fetched: FetchResult) -> dict[str, Any]:
    """Return a result as plain data."""
    return {
        "answers": [
            [key_text(key), [solution_text(solution) for solution in solutions]]
            for key, solutions in fetched.answers.items()
        ],
        "requests": fetched.requests,
        "faults": dict(fetched.faults),
        **({} if fetched.elapsed is None else {"elapsed": fetched.elapsed}),
    }


def fetched_from(state: Mapping[str, Any]) -> FetchResult:
    """Return the result from its plain data."""
    try:
        pairs = state["answers"]
        texts = [t for key, solutions in pairs for t in _texts(key, solutions)]
        terms = iter(read_terms(texts))
        answers = {
            tuple(next(terms) for _ in key): tuple(
                {name: next(terms) for name in solution} for solution in solutions
            )
            for key, solutions in pairs
        }
        faults, elapsed = dict(state["faults"]), state.get("elapsed")
        return FetchResult(answers, state["requests"], faults, elapsed)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise StateError(f"a recorded answer is damaged: {error}") from None


def _texts(key: Sequence[str], solutions: Sequence[Mapping[str, str]]) -> list[str]:
    return [*key, *(text for solution in solutions for text in solution.values())]
