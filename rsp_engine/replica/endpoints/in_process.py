"""A store in the same process as an endpoint: asked directly, and nothing is sent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.errors import ServiceError
from rsp_engine.replica.endpoints.endpoint import Fetched
from rsp_engine.replica.sparql_client.faults import FaultError
from rsp_engine.replica.sparql_client.nested import refuse_nested
from rsp_engine.replica.sparql_client.request_meter import RequestMeter
from rsp_engine.replica.sparql_client.request_text import batches, unaskable, whole_text
from rsp_engine.replica.sparql_client.rows import answers_of_batch, answers_of_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemotePattern
    from rsp_engine.replica.sparql_client.rows import Answers, ResultRow, RowFaults

__all__ = ["EVALUATION", "InProcessEndpoint", "ask", "refuse_unreadable", "spent"]

EVALUATION = "evaluation"
"""The cause where Oxigraph cannot evaluate a clause, say because a disk fails."""


class InProcessEndpoint:
    """A store or a dataset, asked as it is at the moment: whoever holds it may change it.

    A call is one request, however many keys it has. Oxigraph cannot be stopped while it works, so
    of deadlines only one of 0 is kept. A dataset is copied for each call: large data want a store.
    """

    def __init__(self, pattern: RemotePattern, data: ox.Store | ox.Dataset) -> None:
        refuse_nested(pattern)
        refuse_unreadable(pattern)
        self._pattern = pattern
        self._data = data

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> Fetched:
        if (cause := spent(limits)) is not None:
            return Fetched(faults={cause: 1})
        answers: Answers = {}
        causes = [cause for key in dict.fromkeys(keys) if (cause := unaskable(key)) is not None]
        faults: RowFaults = {cause: causes.count(cause) for cause in causes}
        askable = [key for key in keys if unaskable(key) is None]
        for batch in batches(self._pattern, askable):
            rows = ask(self._data, batch.text)
            found, more = ({}, {EVALUATION: 1}) if rows is None else answers_of_batch(batch, rows)
            answers |= found
            faults |= {cause: faults.get(cause, 0) + count for cause, count in more.items()}
        return Fetched(answers, int(bool(askable)), faults)

    def snapshot(self, limits: Limits, now: int) -> Fetched:
        if (cause := spent(limits)) is not None:
            return Fetched(faults={cause: 1})
        rows = ask(self._data, whole_text(self._pattern))
        if rows is None:
            return Fetched(requests=1, faults={EVALUATION: 1})
        answers, faults = answers_of_whole(self._pattern, rows)
        return Fetched(answers, 1, faults)

    def close(self) -> None:
        """Hold nothing that must be given back: the data are whose they were."""


def spent(limits: Limits) -> str | None:
    """Return the cause if the limits allow not even one request."""
    try:
        RequestMeter(limits).spend(math.inf)
    except FaultError as fault:
        return fault.cause
    return None


def ask(data: ox.Store | ox.Dataset, text: str) -> list[ResultRow] | None:
    """Ask a SELECT; return its rows, or nothing if it cannot be evaluated."""
    try:
        result = _store(data).query(text)
        assert isinstance(result, ox.QuerySolutions), "rows are asked for"  # noqa: S101
        names = [variable.value for variable in result.variables]
        return [_row(names, solution) for solution in result]
    except (OSError, RuntimeError, ValueError):
        return None


def _store(data: ox.Store | ox.Dataset) -> ox.Store:
    """Return a store, since a dataset cannot be asked."""
    if isinstance(data, ox.Store):
        return data
    store = ox.Store()
    store.extend(data)
    return store


def _row(names: Sequence[str], solution: ox.QuerySolution) -> ResultRow:
    """Return a row; a triple is no term that the engine can hold."""
    found = ((name, solution[name]) for name in names)
    return {n: None if isinstance(t, ox.Triple) else t for n, t in found if t is not None}


def refuse_unreadable(pattern: RemotePattern) -> None:
    """Refuse a clause that is not SPARQL, or that needs functions Oxigraph does not have."""
    try:
        ox.Store().query(whole_text(pattern))
    except (SyntaxError, RuntimeError) as error:
        raise ServiceError(
            f"the group of SERVICE <{pattern.service}> cannot be evaluated: {error}"
        ) from None
