"""The observations of open windows, as a query has them: objects by number, and their solutions.

An observation is a solution of the pattern of an attribute. The content of a window is a set, so
one that comes again counts once and lives as long as its last arrival. Objects are numbered, and
the number of one that has left is given to another.
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
"""What tells a part of the content of a window from others: its pane, or its number."""


@dataclass(slots=True)
class Observation:
    """A value of an attribute, until when it lives, and which parts of the window hold it."""

    attribute: int
    solution: SolutionTuple
    value: float
    end: int
    parts: list[ObservedPart]


class _Name(NamedTuple):
    """What tells an observation from others."""

    attribute: int
    solution: SolutionTuple


class ObservationStore:
    """Memory: the observations that were taken and have neither expired nor been forgotten."""

    def __init__(self) -> None:
        self._numbers: dict[SolutionTuple, int] = {}
        self._keys: dict[int, SolutionTuple] = {}
        self._free: list[int] = []
        self._observations: dict[int, dict[_Name, Observation]] = {}
        self._ends: dict[int, list[tuple[int, _Name]]] = {}

    def number(self, key: SolutionTuple) -> int:
        """Return the number of an object, a new one if it has none."""
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
        """Take an observation of an object that lives until a window; none if it does already.

        Otherwise return until when it would have lived, which is -1 for one that is new.
        """
        name = _Name(new.attribute, new.solution)
        known = self._observations[number].get(name)
        since = -1 if known is None else known.end
        if known is None:
            self._observations[number][name] = new
        else:
            known.parts += new.parts
            if known.end >= new.end:
                return None
            known.end = new.end
        self._ends.setdefault(new.end, []).append((number, name))
        return since

    def count(self, number: int, attribute: int) -> int:
        """Return how many values of an attribute an object has."""
        return sum(name.attribute == attribute for name in self._observations[number])

    def expire(self, window: int) -> None:
        """Forget observations that do not live until a window."""
        for end in sorted(end for end in self._ends if end < window):
            for number, name in self._ends.pop(end):
                found = self._observations.get(number, {}).get(name)
                if found is not None and found.end == end:
                    del self._observations[number][name]
                    if not self._observations[number]:
                        self.forget(number)

    def forget(self, number: int) -> None:
        """Forget an object."""
        del self._numbers[self._keys.pop(number)], self._observations[number]
        self._free.append(number)

    def state(self) -> StateData:
        """Return everything as plain data."""
        found = [(n, o) for n in self._keys for o in self._observations[n].values()]
        return {
            "numbers": list(self._keys),
            "width": [len(key) for key in self._keys.values()],
            "keys": [row_text(key) for key in self._keys.values()],
            "free": list(self._free),
            "observations": [[number, *_saved(each)] for number, each in found],
        }

    def restore(self, state: StateData) -> None:
        """Go on from a state, before anything is taken."""
        for number, width, text in zip(
            state["numbers"], state["width"], state["keys"], strict=True
        ):
            key = _row(text, width)
            self._numbers[key], self._keys[number] = number, key
            self._observations[number] = {}
        self._free = list(state["free"])
        for number, attribute, width, text, value, end, parts in state["observations"]:
            solution = _row(text, width)
            held = [Pane(*part) if isinstance(part, list) else part for part in parts]
            name = _Name(attribute, solution)
            self._observations[number][name] = Observation(attribute, solution, value, end, held)
            self._ends.setdefault(end, []).append((number, name))


def _row(text: str, width: int) -> Any:  # noqa: ANN401 - every term of a solution is there
    [row] = read_rows([text], width)
    return row


def _saved(observation: Observation) -> Iterator[Any]:
    solution = observation.solution
    yield from (observation.attribute, len(solution), row_text(solution))
    yield from (observation.value, observation.end)
    yield [[p.first, p.last] if isinstance(p, Pane) else p for p in observation.parts]
