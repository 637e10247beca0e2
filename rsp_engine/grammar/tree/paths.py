"""Property paths (SPARQL 1.1, section 9). A single IRI is a path as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rsp_engine.grammar.tree.node import Node
from rsp_engine.grammar.tree.terms import Iri

__all__ = [
    "Path",
    "PathAlternative",
    "PathInverse",
    "PathNegated",
    "PathRepeat",
    "PathSequence",
]


@dataclass(frozen=True, slots=True)
class PathAlternative(Node):
    """`p | q | ...`, two or more."""

    options: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathSequence(Node):
    """`p / q / ...`, two or more."""

    steps: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathInverse(Node):
    """`^p`."""

    path: Path


@dataclass(frozen=True, slots=True)
class PathRepeat(Node):
    """`p?`, `p*` or `p+`."""

    path: Path
    modifier: Literal["?", "*", "+"]


@dataclass(frozen=True, slots=True)
class PathNegated(Node):
    """`!(p | ^q | ...)`: any property but these."""

    excluded: tuple[Iri | PathInverse, ...]


Path = Iri | PathAlternative | PathSequence | PathInverse | PathRepeat | PathNegated
