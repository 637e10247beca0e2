"""A sample of predicates: those of the first triples of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rsp_engine.model.streams import DeadLetter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rsp_engine.io.sources.batch import ElementBatch
    from rsp_engine.model.streams import Element

    Item = TypeVar("Item", bound=ElementBatch | Element | DeadLetter)

__all__ = ["MOST_SAMPLED", "PredicateSample"]

MOST_SAMPLED = 20_000
"""The size of a sample, in triples."""


class PredicateSample:
    """The predicates of the first triples of a source; what follows costs nothing."""

    def __init__(self, *, is_cut: bool = False) -> None:
        """Start a sample, of a source whose end `is_cut` off if it is known to have more."""
        self.predicates: set[str] = set()
        self._is_cut = is_cut
        self._left = MOST_SAMPLED

    @property
    def is_whole(self) -> bool:
        """Whether all triples so far are in the sample."""
        return self._left > 0 and not self._is_cut

    def take(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield all items, and sample the first ones on the way."""
        following = iter(items)
        for item in following:
            if not isinstance(item, DeadLetter):
                self.predicates.update(triple.predicate.value for triple in item.triples)
                self._left -= len(item.triples)
            yield item
            if self._left <= 0:
                break
        yield from following
