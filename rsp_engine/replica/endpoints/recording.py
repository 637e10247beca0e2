"""An endpoint that remembers what it fetched, so that a replay fetches nothing.

Answers are written down before the output that they led to. After a crash the same evaluations are
run again: they ask the same questions in the same order, and get the answers that were written
down, at no request. What was not written down is asked again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.errors import StateError
from rsp_engine.model.terms.ntriples import read_terms
from rsp_engine.replica.endpoints.endpoint import Fetched
from rsp_engine.replica.store.terms import key_text, solution_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rsp_engine.replica.endpoints.endpoint import Endpoint, Limits
    from rsp_engine.replica.pattern import Key

__all__ = ["RecordedCall", "RecordingEndpoint", "Taken", "fetched_from", "fetched_state"]

RecordedCall = dict[str, Any]
"""A question and its answer as plain data."""


class Taken(NamedTuple):
    """The calls since they were last taken: how many were replayed, and then the new ones."""

    replayed: int
    calls: list[RecordedCall]


class RecordingEndpoint:
    """Asks another endpoint, unless the answer is written down.

    `calls` are those of a run that broke off, in order. An evaluation is known by its instant.
    """

    def __init__(self, endpoint: Endpoint, calls: Iterable[Mapping[str, Any]] = ()) -> None:
        self._endpoint = endpoint
        self._replayed = deque(calls)
        self._again = 0
        self._new: list[RecordedCall] = []
        self._is_strict = True

    def replay(self, calls: Iterable[Mapping[str, Any]], *, is_strict: bool = True) -> None:
        """Answer the next calls as these were answered.

        Another question is refused; or, where it may be another, it is asked, and all after it.
        """
        self._replayed = deque(calls)
        self._is_strict = is_strict

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> Fetched:
        asked: RecordedCall = {"now": now, "keys": [key_text(key) for key in keys]}
        if self._is_written(asked):
            return self._repeated(asked)
        return self._noted(asked, self._endpoint.fetch(keys, limits, now))

    def snapshot(self, limits: Limits, now: int) -> Fetched:
        asked: RecordedCall = {"now": now, "keys": None}
        if self._is_written(asked):
            return self._repeated(asked)
        return self._noted(asked, self._endpoint.snapshot(limits, now))

    def _is_written(self, asked: RecordedCall) -> bool:
        if self._replayed and not self._is_strict and not _fits(self._replayed[0], asked):
            self._replayed.clear()
        return bool(self._replayed)

    def _repeated(self, asked: RecordedCall) -> Fetched:
        """Return the answer that is written down; another question is another run."""
        call = self._replayed.popleft()
        if not _fits(call, asked):
            raise StateError(
                f"the answers written down are those of another run: it asked at "
                f"{call.get('now')}, where this one asks at {asked['now']}",
                "remove what is written down, and start anew",
            )
        self._again += 1
        return fetched_from(call)

    def _noted(self, asked: RecordedCall, fetched: Fetched) -> Fetched:
        self._new.append({**asked, **fetched_state(fetched)})
        return fetched

    def take(self) -> Taken:
        """Return the calls since this was last asked, the new ones to be written down."""
        taken = Taken(self._again, self._new)
        self._again, self._new = 0, []
        return taken

    def waiting(self) -> list[RecordedCall]:
        """Return the calls that are still to be replayed."""
        return [dict(call) for call in self._replayed]

    def close(self) -> None:
        self._endpoint.close()


def _fits(call: Mapping[str, Any], asked: RecordedCall) -> bool:
    return all(call.get(name) == value for name, value in asked.items())


def fetched_state(fetched: Fetched) -> dict[str, Any]:
    """Return what was fetched as plain data."""
    return {
        "answers": [
            [key_text(key), [solution_text(solution) for solution in solutions]]
            for key, solutions in fetched.answers.items()
        ],
        "requests": fetched.requests,
        "faults": dict(fetched.faults),
    }


def fetched_from(state: Mapping[str, Any]) -> Fetched:
    """Return what was written down."""
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
        return Fetched(answers, state["requests"], dict(state["faults"]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise StateError(f"an answer written down is damaged: {error}") from None


def _texts(key: Sequence[str], solutions: Sequence[Mapping[str, str]]) -> list[str]:
    return [*key, *(text for solution in solutions for text in solution.values())]
