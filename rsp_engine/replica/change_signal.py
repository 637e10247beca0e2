"""The change signal: which keys have changed since their last refresh, without their new values.

A service may publish when a key was last modified, as a property of the key such as `dct:modified`.
Before it fetches values, the client asks once for the stamps of all candidates:

    SELECT ?place ?modified WHERE { VALUES (?place ?user) { ... } { ?user dct:modified ?modified } }

and compares each stamp with the one it received when it last fetched the key. So clocks need not
agree, and a stamp may be any term: a time, a version, an ETag. A change between the signal and the
fetch shows in the next signal. For a key without a stamp there is no signal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from pyoxigraph import NamedNode, Variable

from rsp_engine.errors import BindingError
from rsp_engine.model.blocks import RowBlocks, rows_of
from rsp_engine.replica.endpoints.endpoint import UNLIMITED
from rsp_engine.replica.pattern import RemotePattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rsp_engine.model.arrays import Booleans, Integers
    from rsp_engine.replica.endpoints.endpoint import Endpoint, FetchResult, Limits
    from rsp_engine.replica.pattern import RemoteSolution
    from rsp_engine.replica.store.keys import Keys

__all__ = ["ChangeSignal", "ModifiedPattern", "SignalReply", "modified_pattern"]


@dataclass(frozen=True, slots=True)
class ModifiedPattern(RemotePattern):
    """The pattern that asks for the stamps of keys."""


def modified_pattern(pattern: RemotePattern, modified: str) -> ModifiedPattern:
    """Return the pattern that reads the property `modified` of the keys of a clause.

    >>> pattern = RemotePattern("http://e.org/s", "{ ?k <http://e.org/p> ?v }", ("k",), ("v",))
    >>> modified_pattern(pattern, "http://purl.org/dc/terms/modified").body
    '{ ?k <http://purl.org/dc/terms/modified> ?modified }'
    """
    try:
        verb = NamedNode(modified)
    except ValueError:
        raise BindingError(f"{modified} is not an IRI, so it cannot be a property") from None
    if len(pattern.keys) != 1:
        count = len(pattern.keys)
        raise BindingError(
            f"<{pattern.service}> tells when a key was modified, and the clause has {count} keys",
            "remove the property, or join on one variable",
        )
    name = "modified"
    while name in pattern.keys:
        name += "_"
    body = f"{{ {Variable(pattern.keys[0])} {verb} {Variable(name)} }}"
    return ModifiedPattern(pattern.service, body, pattern.keys, (name,))


@dataclass(frozen=True, slots=True)
class SignalReply:
    """The reply to a change signal: which keys it covers (`is_covered`), and which have changed."""

    is_covered: Booleans
    changed: Booleans
    requests: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)

    @property
    def unchanged(self) -> Booleans:
        """Which keys are known to be unchanged."""
        return self.is_covered & ~self.changed


class ChangeSignal:
    """Compares the stamps of keys. Memory: the stamp of each value in the replica."""

    def __init__(self, endpoint: Endpoint, keys: Keys) -> None:
        self._endpoint = endpoint
        self._keys = keys
        self._stamps: dict[int, str] = {}
        self._received: dict[int, str] = {}
        self._blocks = RowBlocks()

    def snapshot(self, now: int) -> FetchResult:
        """Return the stamps of all keys. Call it before the snapshot of the values."""
        return self._endpoint.snapshot(UNLIMITED, now)

    def load(self, snapshot: FetchResult) -> None:
        """Record the stamps of a snapshot for the keys that it loaded."""
        self._receive(snapshot)
        self.record_fetched(self._received)

    def ask(self, numbers: Integers, limits: Limits, now: int) -> SignalReply:
        """Ask which keys have changed since their last refresh."""
        fetched = self._endpoint.fetch(self._keys.of(numbers.tolist()), limits, now)
        self._receive(fetched)
        stamps = [(self._stamps.get(n), self._received.get(n)) for n in numbers.tolist()]
        is_covered = np.array([None not in pair for pair in stamps], dtype=bool)
        differ = [old != new for old, new in stamps]
        return SignalReply(
            is_covered, np.array(differ, dtype=bool) & is_covered, fetched.requests, fetched.faults
        )

    def _receive(self, fetched: FetchResult) -> None:
        stamps = ((key, _stamp(solutions)) for key, solutions in fetched.answers.items())
        self._received = {
            self._keys.number(key): stamp for key, stamp in stamps if stamp and key in self._keys
        }

    def record_fetched(self, numbers: Iterable[int]) -> None:
        """Record that keys were fetched: the stamps received last are those of their values.

        A key without such a stamp has no signal until it is fetched again.
        """
        for number in numbers:
            self._blocks.touch_one(number)
            if number in self._received:
                self._stamps[number] = self._received[number]
            else:
                self._stamps.pop(number, None)

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget the stamps of keys."""
        for number in numbers:
            self._blocks.touch_one(number)
            self._stamps.pop(number, None)
            self._received.pop(number, None)

    def state(self) -> dict[str, Any]:
        """Return the stamps as plain data, by key number."""
        rows = self._blocks.state(self._stamps, lambda some: [[n, self._stamps[n]] for n in some])
        return {"size": len(self._stamps), "rows": rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self._stamps = dict(rows_of(state["rows"], state["size"]))
        self._blocks = RowBlocks()

    def close(self) -> None:
        """Close the endpoint."""
        self._endpoint.close()


def _stamp(solutions: Iterable[RemoteSolution]) -> str:
    """Return all stamps of a key as one text; empty if there is none."""
    return " ".join(sorted(str(term) for solution in solutions for term in solution.values()))
