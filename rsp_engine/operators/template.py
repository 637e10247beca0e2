"""The template of a CONSTRUCT: triples with holes, filled once per solution (SPARQL 1.1, 16.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Hole", "Template", "TemplateTerm"]


@dataclass(frozen=True, slots=True)
class Hole:
    """A variable of the template."""

    name: str


TemplateTerm = NamedNode | Literal | BlankNode | Hole


@dataclass(frozen=True, slots=True)
class Template:
    """Triples whose blank nodes are new in every solution."""

    triples: tuple[tuple[TemplateTerm, TemplateTerm, TemplateTerm], ...]

    def fill(
        self, solutions: Sequence[Mapping[str, NamedNode | BlankNode | Literal]]
    ) -> Iterator[Triple]:
        """Yield the triples of all solutions, but for those with a hole left or a wrong term."""
        for number, solution in enumerate(solutions):
            for pattern in self.triples:
                subject, predicate, value = (_filled(term, solution, number) for term in pattern)
                if (
                    isinstance(subject, NamedNode | BlankNode)
                    and isinstance(predicate, NamedNode)
                    and value is not None
                ):
                    yield Triple(subject, predicate, value)


def _filled(
    term: TemplateTerm, solution: Mapping[str, NamedNode | BlankNode | Literal], number: int
) -> NamedNode | BlankNode | Literal | None:
    match term:
        case Hole(name):
            return solution.get(name)
        case BlankNode():
            return BlankNode(f"new{number}.{term.value}")
        case _:
            return term
