"""The store of observations in RDF terms: the solutions of each object of the open windows.

The operators work on numbers; this store maps them to terms. An observation is a solution of the
pattern of an attribute. The content of a window is a set, so an observation that arrives again
counts once, and lives as long as its last arrival. Objects are numbered, and the number of an
object that has left is reused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.model.terms.ntriples import read_rows, row_text
from rsp_engine.model.windows import Pane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.state import StateData
    from rsp_engine.operators.sparql.pane_matcher import SolutionTuple

__all__ = ["Observation", "ObservationStore", "ObservedPart"]

ObservedPart = Pane | int
"""The key of a part of the content of a window: a pane, or a number in a count window."""


@dataclass(slots=True)
class Observation:
    """A value of an attribute, the last window that holds it, and the parts that contain it."""

    attribute: int
    solution: SolutionTuple
    value: float
    end: int
    parts: list[ObservedPart]


class _Identity(NamedTuple):
    """The identity of an observation among those of an object."""

    attribute: int
    solution: SolutionTuple


class ObservationStore:
    """The observations by object. Memory: all that have neither expired nor been forgotten."""

    def __init__(self) -> None:
        self._numbers: dict[SolutionTuple, int] = {}
        self._keys: dict[int, SolutionTuple] = {}
        self._free: list[int] = []
        self._observations: dict[int, dict[_Identity, Observation]] = {}
        self._ends: dict[int, list[tuple[int, _Identity]]] = {}

    def number(self, key: SolutionTuple) -> int:
        """Return the number of an object, and assign one if it has none."""
        number = self._numbers.get(key)
        if number is None:
            number = self._free.pop() if self._free else len(self._keys)
            self._numbers[key] = number
            self._keys[number] = key
            self._observations[number] = {}
        return number

    def numbers(self) -> list[int]:
        """Return the numbers of all objects."""
        return list(self._keys)

    def of(self, number: int) -> list[Observation]:
        """Return the observations of an object."""
        return list(self._observations[number].values())

    def take(self, number: int, new: Observation) -> int | None:
        """Add an observation of an object, and return the previous end of its life.

        The previous end is -1 for a new observation. Return None if the observation already lives
        as long.
        """
        identity = _Identity(new.attribute, new.solution)
        known = self._observations[number].get(identity)
        since = -1 if known is None else known.end
        if known is None:
            self._observations[number][identity] = new
        else:
            known.parts += new.parts
            if known.end >= new.end:
                return None
            known.end = new.end
        self._ends.setdefault(new.end, []).append((number, identity))
        return since

    def count(self, number: int, attribute: int) -> int:
        """Return the number of values of an attribute of an object."""
        return sum(each.attribute == attribute for each in self._observations[number])

    def expire(self, window: int) -> None:
        """Remove observations whose last window is before this one."""
        for end in sorted(end for end in self._ends if end < window):
            for number, identity in self._ends.pop(end):
                observation = self._observations.get(number, {}).get(identity)
                if observation is not None and observation.end == end:
                    del self._observations[number][identity]
                    if not self._observations[number]:
                        self.forget(number)

    def forget(self, number: int) -> None:
        """Remove an object, and free its number."""
        del self._numbers[self._keys.pop(number)], self._observations[number]
        self._free.append(number)

    def state(self) -> StateData:
        """Return the state as plain data."""
        observations = [(n, o) for n in self._keys for o in self._observations[n].values()]
        return {
            "numbers": list(self._keys),
            "width": [len(key) for key in self._keys.values()],
            "keys": [row_text(key) for key in self._keys.values()],
            "free": list(self._free),
            "observations": [[number, *_saved(each)] for number, each in observations],
        }

    def restore(self, state: StateData) -> None:
        """Restore the state into an empty store."""
        for number, width, text in zip(
            state["numbers"], state["width"], state["keys"], strict=True
        ):
            key = _row(text, width)
            self._numbers[key], self._keys[number] = number, key
            self._observations[number] = {}
        self._free = list(state["free"])
        for number, attribute, width, text, value, end, parts in state["observations"]:
            solution = _row(text, width)
            keys = [Pane(*part) if isinstance(part, list) else part for part in parts]
            identity = _Identity(attribute, solution)
            observation = Observation(attribute, solution, value, end, keys)
            self._observations[number][identity] = observation
            self._ends.setdefault(end, []).append((number, identity))


def _row(text: str, width: int) -> Any:  # noqa: ANN401 - a solution has no unbound terms
    [row] = read_rows([text], width)
    return row


def _saved(observation: Observation) -> Iterator[Any]:
    solution = observation.solution
    yield from (observation.attribute, len(solution), row_text(solution))
    yield from (observation.value, observation.end)
    yield [[p.first, p.last] if isinstance(p, Pane) else p for p in observation.parts]
