"""The change signal: which keys have changed since they were last refreshed, not what they are now.

A service may say when a key was last modified, by a property of the key such as `dct:modified`. The
client asks once for all keys that count, beside what it fetches:

    SELECT ?place ?modified WHERE { VALUES (?place ?user) { ... } { ?user dct:modified ?modified } }

and compares what it hears with what it heard when it last fetched the key. So clocks need not
agree, and a stamp may be any term: a time, a version, an ETag. What changes between the signal and
the fetch is told by the next signal. Of a key without a stamp nothing is known.
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
    from rsp_engine.replica.endpoints.endpoint import Endpoint, Fetched, Limits
    from rsp_engine.replica.pattern import RemoteSolution
    from rsp_engine.replica.store.keys import Keys

__all__ = ["ChangeSignal", "ModifiedPattern", "SignalReply", "modified_pattern"]


@dataclass(frozen=True, slots=True)
class ModifiedPattern(RemotePattern):
    """What asks for the stamps of keys."""


def modified_pattern(pattern: RemotePattern, modified: str) -> ModifiedPattern:
    """Return what asks when the keys of a clause were modified, by a property of them.

    >>> pattern = RemotePattern("http://e.org/s", "{ ?k <http://e.org/p> ?v }", ("k",), ("v",))
    >>> modified_pattern(pattern, "http://purl.org/dc/terms/modified").body
    '{ ?k <http://purl.org/dc/terms/modified> ?modified }'
    """
    try:
        verb = NamedNode(modified)
    except ValueError:
        raise BindingError(f"{modified} is no IRI, so it is no property") from None
    if len(pattern.keys) != 1:
        count = len(pattern.keys)
        raise BindingError(
            f"<{pattern.service}> tells when a key was modified, and the clause has {count} keys",
            "leave the property out, or join on one variable",
        )
    name = "modified"
    while name in pattern.keys:
        name += "_"
    body = f"{{ {Variable(pattern.keys[0])} {verb} {Variable(name)} }}"
    return ModifiedPattern(pattern.service, body, pattern.keys, (name,))


@dataclass(frozen=True, slots=True)
class SignalReply:
    """What was told of some keys: of which something, and which of them have changed."""

    is_told: Booleans
    changed: Booleans
    requests: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)

    @property
    def unchanged(self) -> Booleans:
        """Which keys are known to be as they were."""
        return self.is_told & ~self.changed


class ChangeSignal:
    """Memory: for each key the stamp of the value that is held."""

    def __init__(self, endpoint: Endpoint, keys: Keys) -> None:
        self._endpoint = endpoint
        self._keys = keys
        self._held: dict[int, str] = {}
        self._heard: dict[int, str] = {}
        self._blocks = RowBlocks()

    def snapshot(self, now: int) -> Fetched:
        """Return the stamps of everything, to be asked for before all values are."""
        return self._endpoint.snapshot(UNLIMITED, now)

    def load(self, snapshot: Fetched) -> None:
        """Take the stamps of all keys that are known by now."""
        self._hear(snapshot)
        self.took(self._heard)

    def ask(self, numbers: Integers, limits: Limits, now: int) -> SignalReply:
        """Ask which keys have changed since they were last taken in."""
        fetched = self._endpoint.fetch(self._keys.of(numbers.tolist()), limits, now)
        self._hear(fetched)
        held = [self._held.get(number) for number in numbers.tolist()]
        heard = [self._heard.get(number) for number in numbers.tolist()]
        is_told = np.array([None not in pair for pair in zip(held, heard, strict=True)], dtype=bool)
        differ = [old != new for old, new in zip(held, heard, strict=True)]
        return SignalReply(
            is_told, np.array(differ, dtype=bool) & is_told, fetched.requests, fetched.faults
        )

    def _hear(self, fetched: Fetched) -> None:
        stamps = ((key, _stamp(solutions)) for key, solutions in fetched.answers.items())
        self._heard = {
            self._keys.number(key): stamp for key, stamp in stamps if stamp and key in self._keys
        }

    def took(self, numbers: Iterable[int]) -> None:
        """Note that the values of keys were taken in, after their stamps were heard.

        A stamp that was not heard may be any: of that key nothing is known.
        """
        for number in numbers:
            self._blocks.touch_one(number)
            if number in self._heard:
                self._held[number] = self._heard[number]
            else:
                self._held.pop(number, None)

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget the stamps of keys."""
        for number in numbers:
            self._blocks.touch_one(number)
            self._held.pop(number, None)
            self._heard.pop(number, None)

    def state(self) -> dict[str, Any]:
        """Return the stamps as plain data, in the order of the keys."""
        rows = self._blocks.state(self._held, lambda some: [[n, self._held[n]] for n in some])
        return {"size": len(self._held), "rows": rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what was saved."""
        self._held = dict(rows_of(state["rows"], state["size"]))
        self._blocks = RowBlocks()

    def close(self) -> None:
        """Give back what the endpoint holds."""
        self._endpoint.close()


def _stamp(solutions: Iterable[RemoteSolution]) -> str:
    """Return all stamps of a key as one text; none is no stamp."""
    return " ".join(sorted(str(term) for solution in solutions for term in solution.values()))
