"""The template of a CONSTRUCT, instantiated once per solution (SPARQL 1.1, section 16.2)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Hole", "TemplateTerm", "TripleTemplate"]

_NEW = re.compile(r"(?<=_:)new[0-9a-f]{16}x[0-9]+x")


@dataclass(frozen=True, slots=True)
class Hole:
    """A variable of the template."""

    name: str


TemplateTerm = NamedNode | Literal | BlankNode | Hole


@dataclass(frozen=True, slots=True)
class TripleTemplate:
    """Triples with variables. Their blank nodes are new in every solution."""

    triples: tuple[tuple[TemplateTerm, TemplateTerm, TemplateTerm], ...]

    def fill(
        self, solutions: Sequence[Mapping[str, NamedNode | BlankNode | Literal]]
    ) -> tuple[Triple, ...]:
        """Return the triples of all solutions, each once and in term order.

        A triple with an unbound variable, or with a term that its place does not allow, is left
        out. New blank nodes sort in the order of their solutions.
        """
        seen: Counter[str] = Counter()
        places: dict[str, str] = {}
        triples: set[Triple] = set()
        for solution in solutions:
            name = self._name(solution, seen)
            places[name] = f"new{len(places):09}x"
            for pattern in self.triples:
                subject, predicate, value = (_fill_term(term, solution, name) for term in pattern)
                if (
                    isinstance(subject, NamedNode | BlankNode)
                    and isinstance(predicate, NamedNode)
                    and value is not None
                ):
                    triples.add(Triple(subject, predicate, value))
        return tuple(sorted(triples, key=lambda t: _NEW.sub(lambda m: places[m[0]], str(t))))

    def _name(
        self, solution: Mapping[str, NamedNode | BlankNode | Literal], seen: Counter[str]
    ) -> str:
        """Return the label prefix for the blank nodes of a solution: the same in every evaluation.

        It is a hash of the values of the solution; equal solutions are numbered.
        """
        if not any(isinstance(term, BlankNode) for triple in self.triples for term in triple):
            return ""
        text = "\n".join(f"{name} {solution[name]}" for name in sorted(solution))
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        seen[name] += 1
        return f"new{name}x{seen[name]}x"


def _fill_term(
    term: TemplateTerm, solution: Mapping[str, NamedNode | BlankNode | Literal], name: str
) -> NamedNode | BlankNode | Literal | None:
    match term:
        case Hole(variable):
            return solution.get(variable)
        case BlankNode():
            return BlankNode(name + term.value)
        case _:
            return term
