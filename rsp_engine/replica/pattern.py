"""What a SERVICE clause asks for."""

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
"""The terms of the join variables, in their order; empty where the clause joins nothing."""
RemoteSolution = Mapping[str, Term]
"""A remote solution without its key; a variable without a value is absent."""


@dataclass(frozen=True, slots=True)
class RemotePattern:
    """A SERVICE clause, cut off its query.

    `body` is the group of the clause, braces included, as SPARQL with full IRIs. `keys` are the
    variables that it shares with the rest of the query, `variables` its others. No key at all
    means that the clause is asked for as a whole.
    """

    service: str
    body: str
    keys: tuple[str, ...]
    variables: tuple[str, ...]

    def __post_init__(self) -> None:
        if set(self.keys) & set(self.variables):
            raise ValueError("a variable is a key or it is not")
