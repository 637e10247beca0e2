"""A client of `rsp serve`, over its HTTP API and nothing else.

client = Client("http://127.0.0.1:8321")
client.declare("readings", "http://example.org/readings")
client.push("readings", [(1_000, "<urn:room:1> <urn:temperature> 20 .")])
query = client.submit(text, start="earliest")
for answer in client.answers(query["name"]):
    ...
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import quote

import requests

from rsp_engine.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["DEFAULT_SERVER", "Client", "ServedAnswer"]

DEFAULT_SERVER = "http://127.0.0.1:8321"
_TIMEOUT_S = (5.0, 60.0)
_SILENCE_S = 40.0
"""How long nothing may come of answers: the server sends something every 15 seconds."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


class ServedAnswer(NamedTuple):
    """An answer of a query: its id, from which a client goes on, and its content."""

    id: int
    line: str
    """The line of JSON that `rsp run` prints."""

    @property
    def content(self) -> dict[str, Any]:
        """The answer as plain data."""
        content: dict[str, Any] = json.loads(self.line)
        return content


class Client:
    """A client of a server.

    Args:
        url: The address of the server.
        token: Its token. Default: the variable `RSP_SERVE_TOKEN` of the environment.

    Every method raises `ServerError` if the server refuses a request, or cannot be reached.

    >>> Client("http://127.0.0.1:8321").url
    'http://127.0.0.1:8321'
    """

    def __init__(self, url: str = DEFAULT_SERVER, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy, and no password of another program
        token = os.environ.get("RSP_SERVE_TOKEN") if token is None else token
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections.

        >>> Client().close()
        """
        self._session.close()

    def declare(self, name: str, iri: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - plain data
        """Declare a stream, and return it.

        Args:
            name: Its name in requests.
            iri: Its IRI in queries.
            more: `source`, `options`, `template` or `keep`, as in the body of the request.
        """
        return self._json("POST", "/streams", json={"name": name, "iri": iri, **more})

    def streams(self) -> list[dict[str, Any]]:
        """Return all streams."""
        found: list[dict[str, Any]] = self._json("GET", "/streams")["streams"]
        return found

    def push(
        self, stream: str, elements: Iterable[tuple[int, str]], *, key: str | None = None
    ) -> dict[str, Any]:
        """Push elements to a stream; return what was taken, once it is on disk.

        Args:
            stream: The name of the stream.
            elements: Pairs of a time in ms and a Turtle text.
            key: A key with which a repeated request counts once.
        """
        envelopes = ({"timestamp": time, "graph": graph} for time, graph in elements)
        lines = "".join(json.dumps(each) + "\n" for each in envelopes)
        headers = {"Content-Type": "application/x-ndjson"}
        if key is not None:
            headers["Idempotency-Key"] = key
        path = f"/streams/{quote(stream)}/elements"
        return self._json("POST", path, data=lines.encode(), headers=headers)

    def submit(self, text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - plain data
        """Register a query, and return it.

        Args:
            text: The query, in RSP-QL.
            more: `name`, `start`, `group`, `options`, `services`, `modified`, `graphs`,
                `functions` or `ranges`, as in the body of the request.
        """
        return self._json("POST", "/queries", json={"text": text, **more})

    def queries(self) -> list[dict[str, Any]]:
        """Return all queries."""
        found: list[dict[str, Any]] = self._json("GET", "/queries")["queries"]
        return found

    def query(self, name: str) -> dict[str, Any]:
        """Return a query."""
        return self._json("GET", f"/queries/{quote(name)}")

    def pause(self, name: str) -> dict[str, Any]:
        """Pause a query, and return it."""
        return self._json("POST", f"/queries/{quote(name)}/pause")

    def resume(self, name: str) -> dict[str, Any]:
        """Resume a query, and return it."""
        return self._json("POST", f"/queries/{quote(name)}/resume")

    def delete(self, name: str) -> None:
        """Delete a query."""
        self._request("DELETE", f"/queries/{quote(name)}").close()

    def delete_stream(self, name: str) -> None:
        """Delete a stream that no query reads."""
        self._request("DELETE", f"/streams/{quote(name)}").close()

    def last(self, name: str, count: int = 10) -> list[ServedAnswer]:
        """Return the last answers of a query."""
        path = f"/queries/{quote(name)}/answers?last={count}"
        with self._request("GET", path, headers={"Accept": "application/x-ndjson"}) as response:
            first = int(response.headers.get("First-Id", "1"))
            lines = response.content.decode().split("\n")[:-1]
        return [ServedAnswer(number, line) for number, line in enumerate(lines, first)]

    def answers(
        self, name: str, *, after: int | None = None, patience: float | None = None
    ) -> Iterator[ServedAnswer]:
        """Yield the answers of a query as they come, until it is deleted.

        After a broken connection, it goes on where it was: no answer is missed or repeated.

        Args:
            name: The name of the query.
            after: The id of the last answer that you have; 0 yields all that are kept. Default:
                only new ones.
            patience: How many seconds to try to reach the server again. Default: for ever.

        Raises:
            ServerError: If the query does not exist, or answers are no longer kept.
        """
        pause, lost = _FIRST_PAUSE, None
        if after is None:
            after = self.query(name)["answers"]["last"] or 0
        while True:
            try:
                for event, number, data in self._events(name, after):
                    pause, lost = _FIRST_PAUSE, None
                    if event == "answer":
                        after = number
                        yield ServedAnswer(number, data)
                    elif event == "gap":
                        missed = json.loads(data)["missed"]
                        message = f"the answers {missed[0]} to {missed[1]} are no longer kept"
                        raise ServerError(message, f"go on after {missed[1]}")
                    elif event == "state" and json.loads(data)["state"] == "deleted":
                        return
            except _UnreachableError as error:
                lost = time.monotonic() if lost is None else lost
                if patience is not None and time.monotonic() > lost + patience:
                    raise ServerError(error.message, error.hint) from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _events(self, name: str, after: int) -> Iterator[tuple[str, int, str]]:
        """Yield the type, the id and the data of events, until the connection ends."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        path = f"/queries/{quote(name)}/answers"
        timeout = (_TIMEOUT_S[0], _SILENCE_S)
        with self._request("GET", path, headers=headers, stream=True, timeout=timeout) as response:
            number = after
            event, data = "message", ""
            try:
                for line in _lines(response):
                    field, _, value = line.partition(": ")
                    match field:
                        case "":
                            if data:
                                yield event, number, data
                            event, data = "message", ""
                        case "event":
                            event = value
                        case "id":
                            number = int(value)
                        case "data":
                            data = value
            except requests.RequestException as error:
                raise _UnreachableError(f"{self.url} does not answer: {_cause(error)}") from None

    def validate(self, text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - plain data
        """Return the diagnostics of a query."""
        return self._json("POST", "/validate", json={"text": text, **more})

    def health(self) -> dict[str, Any]:
        """Return the state of the server."""
        return self._json("GET", "/health")

    def _json(self, method: str, path: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - of requests
        with self._request(method, path, **more) as response:
            data: dict[str, Any] = response.json()
            return data

    def _request(self, method: str, path: str, **more: Any) -> requests.Response:  # noqa: ANN401 - of requests
        try:
            response = self._session.request(
                method,
                self.url + path,
                **{"timeout": _TIMEOUT_S, "allow_redirects": False, **more},
            )
        except requests.RequestException as error:
            hint = "start it with `rsp serve`, or name another one: --server URL"
            raise _UnreachableError(f"{self.url} does not answer: {_cause(error)}", hint) from None
        if response.ok:
            return response
        with response:
            raise _refusal(response)


class _UnreachableError(ServerError):
    """The server cannot be reached."""


def _lines(response: requests.Response) -> Iterator[str]:
    """Yield the lines of a response as they come."""
    left = b""
    for piece in response.iter_content(chunk_size=None):
        *lines, left = (left + piece).split(b"\n")
        yield from (line.decode().removesuffix("\r") for line in lines)


def _cause(error: BaseException) -> str:
    """Return the first cause of an error in a few words."""
    cause: BaseException = error
    while cause.__context__ is not None:
        cause = cause.__context__
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _refusal(response: requests.Response) -> ServerError:
    try:
        problem: Mapping[str, Any] = response.json()
        message, hint = str(problem["detail"]), problem.get("hint")
    except (ValueError, KeyError, TypeError):
        return ServerError(f"the server answers {response.status_code} {response.reason}")
    kind = _UnreachableError if response.status_code == requests.codes.unavailable else ServerError
    error = kind(message, hint)
    error.diagnostics = list(problem.get("diagnostics", ()))
    return error
