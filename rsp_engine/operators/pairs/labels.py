"""Numbers for texts, in the order of the texts, so that columns of numbers can be compared."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PairLabels"]


class PairLabels:
    """A text that comes between two others gets a number between theirs, while there is one.

    >>> labels = PairLabels()
    >>> [labels.of(text) for text in ("b", "d", "a", "c")]
    [0.0, 1.0, -1.0, 0.5]
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._numbers: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, text: str) -> float:
        return self._numbers[text]

    def of(self, text: str) -> float | None:
        """Return the number of a text; nothing means that there is no room for it."""
        if text in self._numbers:
            return self._numbers[text]
        place = bisect_left(self._texts, text)
        below = self._numbers[self._texts[place - 1]] if place else None
        above = self._numbers[self._texts[place]] if place < len(self._texts) else None
        number = _between(below, above)
        if number in (below, above):
            return None
        self._texts.insert(place, text)
        self._numbers[text] = number
        return number

    def restart(self, texts: Iterable[str]) -> None:
        """Give these texts new numbers, and forget all others."""
        self._texts = sorted(set(texts))
        self._numbers = {text: float(number) for number, text in enumerate(self._texts)}


def _between(below: float | None, above: float | None) -> float:
    if below is None:
        return 0.0 if above is None else above - 1
    return below + 1 if above is None else (below + above) / 2
