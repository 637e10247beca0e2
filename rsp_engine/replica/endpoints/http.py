"""The HTTP endpoint: fetches from a SPARQL endpoint in batches of keys, or in pages."""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rsp_engine.errors import ServiceError
from rsp_engine.http_client.access import allowed_origin, credentials_of, variables_of
from rsp_engine.http_client.client import HttpClient
from rsp_engine.http_client.faults import ROWS_CUT, FaultError
from rsp_engine.replica.endpoints.endpoint import FetchResult, Limits, RequestMeter
from rsp_engine.replica.sparql_client import request_text
from rsp_engine.replica.sparql_client.pages import Pages, Rows
from rsp_engine.replica.sparql_client.request_text import (
    COUNT,
    batch_of,
    batches,
    count_text,
    key_fault,
    whole_text,
)
from rsp_engine.replica.sparql_client.results import (
    answers_of_batch,
    answers_of_whole,
    in_key_order,
    read_results,
    row_count,
)
from rsp_engine.replica.sparql_client.retry_decision import Act, decide_retry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.replica.pattern import Key, RemotePattern
    from rsp_engine.replica.sparql_client.request_text import KeyBatch
    from rsp_engine.replica.sparql_client.result_table import ResultRow
    from rsp_engine.replica.sparql_client.results import Answers

__all__ = ["HttpConfig", "HttpEndpoint"]


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """The configuration of an HTTP endpoint.

    `allowed` lists the origins, or URLs with these origins, that requests may go to. `timeout_ms`
    bounds one request, even without a deadline. `longest_wait_ms` bounds the wait that a server may
    request with Retry-After. A snapshot of at most `whole_rows` is read at once, without sorting,
    and any other in pages. `credentials` is the prefix of the environment variables that hold the
    credentials.
    """

    allowed: tuple[str, ...]
    batch_keys: int = request_text.MOST_KEYS
    batch_bytes: int = request_text.MOST_BYTES
    page_rows: int = 20_000
    whole_rows: int = 200_000
    answer_bytes: int = 32 * 1024 * 1024
    timeout_ms: int = 30_000
    longest_wait_ms: int = 60_000
    retries: int = 2
    credentials: str | None = None
    ca_file: str | None = None

    def __post_init__(self) -> None:
        for name in ("batch_keys", "batch_bytes", "page_rows", "answer_bytes", "timeout_ms"):
            if getattr(self, name) < 1:
                raise ServiceError(f"{name} must be positive")
        for name in ("longest_wait_ms", "retries", "whole_rows"):
            if getattr(self, name) < 0:
                raise ServiceError(f"{name} must not be negative")
        if self.ca_file is not None and not Path(self.ca_file).is_file():
            raise ServiceError(f"ca_file names no file: {self.ca_file}")


class HttpEndpoint:
    """A SPARQL endpoint over HTTP. Not thread-safe.

    Keys are fetched in batches. A batch that is refused, or whose answer is cut, is halved, down to
    single keys. A snapshot is fetched at once, or in pages if it is large or its answer is cut: if
    it has fewer rows than the server has counted.
    """

    def __init__(
        self,
        url: str,
        pattern: RemotePattern,
        config: HttpConfig,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._origin = allowed_origin(url, config.allowed)
        self._pattern = pattern
        self._names = *pattern.keys, *pattern.variables
        self._config = config
        variables = config.credentials or variables_of(self._origin)
        credentials = credentials_of(variables, environment)
        self._client = HttpClient(url, credentials, config.answer_bytes, config.ca_file)

    def __repr__(self) -> str:
        return f"HttpEndpoint({self._origin})"

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        meter = RequestMeter(limits)
        if not self._pattern.keys:
            return self._fetch_whole(meter) if keys else FetchResult()
        askable = []
        for key in dict.fromkeys(keys):
            if len(key) != len(self._pattern.keys):
                raise ValueError("a key has as many terms as the clause has join variables")
            if cause := key_fault(key, self._config.batch_bytes):
                meter.faults[cause] += 1
            else:
                askable.append(key)
        most = self._config.batch_keys, self._config.batch_bytes
        answers = self._ask_batches(batches(self._pattern, askable, *most), meter)
        return FetchResult(answers, meter.requests, dict(meter.faults))

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        meter = RequestMeter(limits)
        reply: Rows | Act = Act.LESS
        if self._config.whole_rows and limits.max_requests is None:
            reply = self._read_at_once(meter)
        if reply is Act.LESS:
            meter.faults.clear()  # nothing is lost: it is read again, in pages
        return self._whole_or_pages(reply, meter)

    def close(self) -> None:
        self._client.close()

    def _ask_batches(self, pending: Iterator[KeyBatch], meter: RequestMeter) -> Answers:
        answers: Answers = {}
        halves: deque[KeyBatch] = deque()
        refused_keys = 0
        while batch := halves.popleft() if halves else next(pending, None):
            is_divisible = len(batch.keys) > 1
            names = batch.place, *self._pattern.variables
            reply = self._ask(batch.text, names, meter, is_divisible=is_divisible)
            if isinstance(reply, Rows):
                new, faults = answers_of_batch(batch, reply.rows)
                answers |= new
                meter.faults.update(faults)
            elif reply is Act.STOP:
                break
            elif is_divisible:
                half = len(batch.keys) // 2
                halves.appendleft(batch_of(self._pattern, batch.keys[half:]))
                halves.appendleft(batch_of(self._pattern, batch.keys[:half]))
            else:
                refused_keys += 1
                # Two single keys refused and no answer at all: the other keys would be refused too.
                if refused_keys > 1 and not answers:
                    break
        return answers

    def _fetch_whole(self, meter: RequestMeter) -> FetchResult:
        """Fetch a clause without keys: in one request, or in pages if that is too large."""
        reply = self._ask(whole_text(self._pattern), self._names, meter, is_divisible=True)
        return self._whole_or_pages(reply, meter)

    def _whole_or_pages(self, reply: Rows | Act, meter: RequestMeter) -> FetchResult:
        """Return the result of a request for the whole clause, or read it in pages instead."""
        if reply is Act.LESS:
            return self._read_pages(meter)
        rows = reply.rows if isinstance(reply, Rows) else []
        return self._whole(rows, meter, is_complete=isinstance(reply, Rows))

    def _read_at_once(self, meter: RequestMeter) -> Rows | Act:
        """Ask for all rows of the clause, unsorted, unless the server counts too many of them.

        Sorting takes a server far longer than sending, so the rows are sorted here.
        """
        counted = self._ask(count_text(self._pattern), [COUNT], meter, is_divisible=True)
        if not isinstance(counted, Rows):
            return counted
        announced = row_count(counted.rows)
        if announced is None or announced > self._config.whole_rows:
            return Act.LESS
        text = whole_text(self._pattern)
        reply = self._ask(text, self._names, meter, is_divisible=True, is_page=True)
        if not isinstance(reply, Rows):
            return reply
        if reply.is_capped or len(reply.rows) < announced:
            return Act.LESS
        return Rows(in_key_order(self._pattern, reply.rows))

    def _read_pages(self, meter: RequestMeter) -> FetchResult:
        def ask(text: str) -> Rows | Act:
            return self._ask(text, self._names, meter, is_divisible=True, is_page=True)

        pages = Pages(self._pattern, self._config.page_rows, self._config.retries)
        rows, is_complete = pages.read(ask, meter.faults)
        return self._whole(rows, meter, is_complete=is_complete)

    def _whole(
        self, rows: Sequence[ResultRow], meter: RequestMeter, *, is_complete: bool
    ) -> FetchResult:
        answers, faults = answers_of_whole(self._pattern, rows, is_all=is_complete)
        meter.faults.update(faults)
        return FetchResult(answers, meter.requests, dict(meter.faults))

    def _ask(
        self,
        text: str,
        names: Sequence[str],
        meter: RequestMeter,
        *,
        is_divisible: bool,
        is_page: bool = False,
    ) -> Rows | Act:
        """Send a query for variables, with retries; return its rows, or how to go on.

        Only pages may be cut.
        """
        tries = 0
        while True:
            try:
                until = meter.spend(self._config.timeout_ms / 1000)
            except FaultError as fault:
                meter.faults[fault.cause] += 1
                return Act.STOP
            try:
                reply = self._client.ask(text, until)
                if reply.is_capped and not is_page:
                    raise FaultError(ROWS_CUT)
                rows = read_results(reply.body, names, partial(meter.heed, until))
                return Rows(rows, reply.is_capped)
            except FaultError as fault:
                meter.faults[fault.cause] += 1
                tries += 1
                decision = decide_retry(
                    fault, tries, self._config.retries, is_divisible=is_divisible
                )
            if decision.act is not Act.AGAIN:
                return decision.act
            longest = self._config.longest_wait_ms / 1000
            if decision.wait > longest or not meter.allows(decision.wait):
                return Act.STOP
            time.sleep(decision.wait)
