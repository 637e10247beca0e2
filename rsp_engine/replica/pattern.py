"""The remote pattern: what a SERVICE clause asks an endpoint for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rsp_engine.model.terms.term import Term

__all__ = [
    "Key",
    "RemotePattern",
    "RemoteSolution",
]

Key = tuple[Term, ...]
"""The terms of the join variables, in order; empty if the clause shares no variable."""
RemoteSolution = Mapping[str, Term]
"""A remote solution without its key; unbound variables are absent."""


@dataclass(frozen=True, slots=True)
class RemotePattern:
    """A SERVICE clause, independent of its query.

    `body` is the group of the clause, including braces, as SPARQL with full IRIs. `keys` are the
    variables shared with the rest of the query, `variables` the others. Without keys, the clause is
    fetched as a whole.
    """

    service: str
    body: str
    keys: tuple[str, ...]
    variables: tuple[str, ...]

    def __post_init__(self) -> None:
        if set(self.keys) & set(self.variables):
            raise ValueError("a variable is a key or it is not")
