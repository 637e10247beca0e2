"""The in-process endpoint: an Oxigraph store, queried directly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.errors import ServiceError
from rsp_engine.http_client.faults import FaultError
from rsp_engine.replica.endpoints.endpoint import FetchResult, RequestMeter
from rsp_engine.replica.sparql_client.nested import refuse_nested
from rsp_engine.replica.sparql_client.request_text import batches, key_fault, whole_text
from rsp_engine.replica.sparql_client.results import answers_of_batch, answers_of_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemotePattern
    from rsp_engine.replica.sparql_client.result_table import ResultRow
    from rsp_engine.replica.sparql_client.results import Answers, RowFaults

__all__ = ["EVALUATION", "InProcessEndpoint", "ask", "refuse_unreadable", "spent"]

EVALUATION = "evaluation"
"""The fault if Oxigraph cannot evaluate a clause, for example because of a disk error."""


class InProcessEndpoint:
    """A store or a dataset as an endpoint. Each call sees its current content.

    A call counts as one request, whatever the number of keys. Oxigraph cannot be interrupted, so
    the only deadline with an effect is 0. A dataset is copied for each call: use a store for large
    data.
    """

    def __init__(self, pattern: RemotePattern, data: ox.Store | ox.Dataset) -> None:
        refuse_nested(pattern)
        refuse_unreadable(pattern)
        self._pattern = pattern
        self._data = data

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        if (cause := spent(limits)) is not None:
            return FetchResult(faults={cause: 1})
        answers: Answers = {}
        causes = [cause for key in dict.fromkeys(keys) if (cause := key_fault(key)) is not None]
        faults: RowFaults = {cause: causes.count(cause) for cause in causes}
        askable = [key for key in keys if key_fault(key) is None]
        for batch in batches(self._pattern, askable):
            rows = ask(self._data, batch.text)
            new, counts = ({}, {EVALUATION: 1}) if rows is None else answers_of_batch(batch, rows)
            answers |= new
            faults |= {cause: faults.get(cause, 0) + count for cause, count in counts.items()}
        return FetchResult(answers, int(bool(askable)), faults)

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        if (cause := spent(limits)) is not None:
            return FetchResult(faults={cause: 1})
        rows = ask(self._data, whole_text(self._pattern))
        if rows is None:
            return FetchResult(requests=1, faults={EVALUATION: 1})
        answers, faults = answers_of_whole(self._pattern, rows)
        return FetchResult(answers, 1, faults)

    def close(self) -> None:
        """Do nothing: the store belongs to the caller."""


def spent(limits: Limits) -> str | None:
    """Return the fault if the limits do not allow a single request, else None."""
    try:
        RequestMeter(limits).spend(math.inf)
    except FaultError as fault:
        return fault.cause
    return None


def ask(data: ox.Store | ox.Dataset, text: str) -> list[ResultRow] | None:
    """Evaluate a SELECT query; return its rows, or None if it cannot be evaluated."""
    try:
        result = _store(data).query(text)
        assert isinstance(result, ox.QuerySolutions), "the text is a SELECT query"  # noqa: S101
        names = [variable.value for variable in result.variables]
        return [_row(names, solution) for solution in result]
    except (OSError, RuntimeError, ValueError):
        return None


def _store(data: ox.Store | ox.Dataset) -> ox.Store:
    """Return the data as a store, since a dataset cannot be queried."""
    if isinstance(data, ox.Store):
        return data
    store = ox.Store()
    store.extend(data)
    return store


def _row(names: Sequence[str], solution: ox.QuerySolution) -> ResultRow:
    """Return a row; a triple term becomes None, since the engine does not support it."""
    terms = ((name, solution[name]) for name in names)
    return {n: None if isinstance(t, ox.Triple) else t for n, t in terms if t is not None}


def refuse_unreadable(pattern: RemotePattern) -> None:
    """Raise `ServiceError` for a clause with a syntax error or functions unknown to Oxigraph."""
    try:
        ox.Store().query(whole_text(pattern))
    except (SyntaxError, RuntimeError) as error:
        raise ServiceError(
            f"the group of SERVICE <{pattern.service}> cannot be evaluated: {error}"
        ) from None
