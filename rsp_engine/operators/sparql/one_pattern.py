"""One triple pattern, matched without a store.

The literals of the triples are already in the form that a store keeps (see `stored_literal`), so
terms that are the same to a store compare equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.model.terms.numerals import stored_literal
from rsp_engine.operators.sparql.template import Hole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rsp_engine.model.terms.term import Term

__all__ = ["OnePattern"]

_PLACES: tuple[Callable[[ox.Triple], Term], ...] = (
    attrgetter("subject"),
    attrgetter("predicate"),
    attrgetter("object"),
)


@dataclass(frozen=True, slots=True)
class OnePattern:
    """A triple pattern: variables, which may repeat, and constants.

    >>> a, p = ox.NamedNode("urn:a"), ox.NamedNode("urn:p")
    >>> pattern = OnePattern(Hole("s"), p, Hole("v"))
    >>> found = pattern.solutions([ox.Triple(a, p, ox.Literal("x")), ox.Triple(a, a, p)], "vs")
    >>> [[str(term) for term in solution] for solution in found]
    [['"x"', '<urn:a>']]
    """

    subject: Term | Hole
    predicate: Term | Hole
    object: Term | Hole

    def matching(self, triples: Sequence[ox.Triple]) -> Sequence[ox.Triple]:
        """Return the triples that match the pattern."""
        for place, constant in self._constants():
            triples = [triple for triple in triples if place(triple) == constant]
        for place, other in self._repeated():
            triples = [triple for triple in triples if place(triple) == other(triple)]
        return triples

    def others(self, triples: Sequence[ox.Triple]) -> Sequence[ox.Triple]:
        """Return the triples that do not match the pattern."""
        matching = self.matching(triples)
        if len(matching) == len(triples):
            return ()
        matched = set(matching)
        return [triple for triple in triples if triple not in matched]

    def solutions(
        self, triples: Sequence[ox.Triple], variables: Sequence[str]
    ) -> list[tuple[Term | None, ...]]:
        """Return the terms of these variables, for each triple that matches.

        A variable that the pattern does not have is None.
        """
        matching = self.matching(triples)
        places = self._variables()
        unbound = [None] * len(matching)
        columns = [map(places[v], matching) if v in places else unbound for v in variables]
        return list(zip(*columns, strict=True)) if columns else [()] * len(matching)

    def triple(self, solution: Sequence[Term], variables: Sequence[str]) -> ox.Triple:
        """Return the triple of a solution that binds all variables of the pattern."""
        bindings = dict(zip(variables, solution, strict=True))
        subject, predicate, value = (
            bindings[term.name] if isinstance(term, Hole) else term
            for term in (self.subject, self.predicate, self.object)
        )
        return ox.Triple(subject, predicate, value)  # type: ignore[arg-type]

    def _terms(self) -> Iterator[tuple[Callable[[ox.Triple], Term], Term | Hole]]:
        return zip(_PLACES, (self.subject, self.predicate, self.object), strict=True)

    def _constants(self) -> Iterator[tuple[Callable[[ox.Triple], Term], Term]]:
        for place, term in self._terms():
            if not isinstance(term, Hole):
                yield place, stored_literal(term) if isinstance(term, ox.Literal) else term

    def _variables(self) -> dict[str, Callable[[ox.Triple], Term]]:
        """Return the first place of each variable."""
        holes = [(place, term.name) for place, term in self._terms() if isinstance(term, Hole)]
        return {name: place for place, name in reversed(holes)}

    def _repeated(
        self,
    ) -> Iterator[tuple[Callable[[ox.Triple], Term], Callable[[ox.Triple], Term]]]:
        first = self._variables()
        for place, term in self._terms():
            if isinstance(term, Hole) and first[term.name] is not place:
                yield first[term.name], place
