"""The keys of a SERVICE clause that an evaluation needs, read from the windows by a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox

from rsp_engine.operators.sparql.sparql_query import SparqlQuery, read_lines, solution_lines
from rsp_engine.replica.sparql_client.request_text import BLANK_NODE_KEY, key_fault

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.replica.store.keys import Keys

__all__ = ["RequiredKeys", "RequiredKeysQuery"]

_NO_KEY, _UNASKABLE, _ANY_KEY = -1, -2, -3  # in place of key numbers


@dataclass(frozen=True, slots=True)
class RequiredKeys:
    """The numbers of the required keys, in term order.

    `is_all` if a solution does not bind a join variable: it joins any key. `unaskable` counts keys
    that no request can hold.
    """

    numbers: Integers
    is_all: bool = False
    unaskable: int = 0


class RequiredKeysQuery:
    """The query for required keys. Windows overlap, so only new keys are parsed."""

    def __init__(self, config: SparqlConfig, keys: Keys) -> None:
        self._query = SparqlQuery(config)
        self._keys = keys
        self._known: dict[str, int] = {}

    def at(self, store: ox.Store, now: int) -> RequiredKeys:
        """Return the keys required by the content of the store, at an instant."""
        solutions = self._query.ask(store, now)
        assert isinstance(solutions, ox.QuerySolutions), "keys are rows"  # noqa: S101
        header, lines = solution_lines(solutions)
        # Sorted, so that a key has the same number in every run.
        new = sorted(line for line in lines if line not in self._known)
        fresh = dict(zip(new, map(self._number, read_lines(header, new)), strict=True))
        self._known = {line: fresh[line] if line in fresh else self._known[line] for line in lines}
        codes = list(self._known.values())
        numbers = self._keys.in_order(np.array([n for n in codes if n >= 0], dtype=np.int64))
        return RequiredKeys(numbers, _ANY_KEY in codes, codes.count(_UNASKABLE))

    def _number(self, terms: tuple[Term | None, ...]) -> int:
        key = tuple(term for term in terms if term is not None)
        cause = key_fault(key)
        if cause == BLANK_NODE_KEY:
            return _NO_KEY  # a blank node equals no remote term, so nothing remote joins it
        if len(key) < len(terms):
            return _ANY_KEY
        return self._keys.number(key) if cause is None else _UNASKABLE
