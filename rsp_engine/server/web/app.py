"""The routes of the HTTP API. What they do is in `service`; this is its shape in HTTP."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from rsp_engine.errors import RspError
from rsp_engine.server.pushes import Push
from rsp_engine.server.refusals import MalformedError
from rsp_engine.server.web.answer_feed import AnswerFeed, FeedItem, MissedAnswers, as_item
from rsp_engine.server.web.exposition import exposition
from rsp_engine.server.web.guard import COOKIE, Guard, Guarded, is_token
from rsp_engine.server.web.openapi import description
from rsp_engine.server.web.problems import problem, problem_of
from rsp_engine.server.web.requests import json_body, parameter, whole_number
from rsp_engine.server.web.texts import explained, validated, vocabulary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from rsp_engine.server.catalog import Job, RegisteredQuery
    from rsp_engine.server.service import StreamService

    _Handler = Callable[[Request], Awaitable[Response]]

__all__ = ["application"]

CONSOLE = Path(__file__).parent.parent / "console" / "bundle"
_EVENTS, _LINES = "text/event-stream", "application/x-ndjson"
_MOST = 10_000
"""The most answers, elements or dead letters of one request."""
_PING_S = 15
_SEND_S = 30
"""How long a client may not read, before it is disconnected."""


class Api:
    """The routes, and the feeds of answers that clients follow."""

    def __init__(self, service: StreamService, token: str | None) -> None:
        self._service = service
        self._token = token
        self._feeds: WeakKeyDictionary[Job, AnswerFeed] = WeakKeyDictionary()
        self._loop: asyncio.AbstractEventLoop | None = None

    def routes(self) -> list[Route]:
        """Return the routes."""
        paths: dict[str, dict[str, _Handler]] = {
            "/streams": {"GET": self.streams, "POST": self.declare},
            "/streams/{name}": {"GET": self.stream, "DELETE": self.undeclare},
            "/streams/{name}/elements": {"GET": self.elements, "POST": self.push},
            "/streams/{name}/dead-letters": {"GET": self.letters},
            "/queries": {"GET": self.queries, "POST": self.register},
            "/queries/{name}": {"GET": self.query, "DELETE": self.delete},
            "/queries/{name}/pause": {"POST": self.pause},
            "/queries/{name}/resume": {"POST": self.resume},
            "/queries/{name}/answers": {"GET": self.answers},
            "/validate": {"POST": self.validate},
            "/explain": {"POST": self.explain},
            "/vocabulary": {"GET": self.vocabulary},
            "/health": {"GET": self.health},
            "/metrics": {"GET": self.metrics},
            "/openapi.json": {"GET": self.openapi},
            "/session": {"POST": self.session},
        }
        return [_route(path, handlers) for path, handlers in paths.items()]

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Let the feeds know of changes, as long as the application runs."""
        self._loop = asyncio.get_running_loop()
        self._service.when_changed(self._tell_feeds)
        yield
        self._loop = None

    def _tell_feeds(self) -> None:
        """Wake the clients of all feeds; any thread may call this."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            for feed in list(self._feeds.values()):
                asyncio.run_coroutine_threadsafe(feed.wake(), loop)

    # Streams

    async def streams(self, _request: Request) -> Response:
        """List the streams."""
        return JSONResponse({"streams": await run_in_threadpool(self._service.streams)})

    async def declare(self, request: Request) -> Response:
        """Declare a stream."""
        body = await json_body(request, self._service.options.largest_query)
        stream, is_new = await run_in_threadpool(self._service.declare, body)
        return _made("/streams", stream, is_new=is_new)

    async def stream(self, request: Request) -> Response:
        """Describe a stream."""
        name = request.path_params["name"]
        return JSONResponse(await run_in_threadpool(self._service.stream, name))

    async def undeclare(self, request: Request) -> Response:
        """Delete a stream."""
        await run_in_threadpool(self._service.undeclare, request.path_params["name"])
        return Response(status_code=204)

    async def push(self, request: Request) -> Response:
        """Push elements."""
        stream = self._service.pushed_to(request.path_params["name"])
        malformed = parameter(request, "malformed", ("refuse", "keep"))
        push = Push(
            await request.body(),
            request.headers.get("content-type", ""),
            request.query_params.get("timestamp"),
            request.headers.get("idempotency-key"),
            malformed == "keep",
        )
        taken = await run_in_threadpool(stream.push, push)
        return JSONResponse(taken._asdict(), 202)

    async def elements(self, request: Request) -> Response:
        """Show the last elements of a stream."""
        count = whole_number(request, "last", 20, most=1000)
        stream = self._service.log_of(request.path_params["name"])
        return JSONResponse({"elements": await run_in_threadpool(stream.last, count)})

    async def letters(self, request: Request) -> Response:
        """Show the last dead letters of a stream."""
        count = whole_number(request, "last", 20, most=1000)
        name = request.path_params["name"]
        letters = await run_in_threadpool(self._service.letters, name, count)
        return JSONResponse({"dead_letters": letters})

    # Queries

    async def queries(self, _request: Request) -> Response:
        """List the queries."""
        return JSONResponse({"queries": await run_in_threadpool(self._service.queries)})

    async def register(self, request: Request) -> Response:
        """Register a query."""
        body = await json_body(request, self._service.options.largest_query)
        query, is_new = await run_in_threadpool(self._service.register, body)
        return _made("/queries", query, is_new=is_new)

    async def query(self, request: Request) -> Response:
        """Describe a query."""
        name = request.path_params["name"]
        return JSONResponse(await run_in_threadpool(self._service.query, name))

    async def delete(self, request: Request) -> Response:
        """Delete a query."""
        name = request.path_params["name"]
        await run_in_threadpool(self._service.delete, name)
        return Response(status_code=204)

    async def pause(self, request: Request) -> Response:
        """Pause a query."""
        name = request.path_params["name"]
        return JSONResponse(await run_in_threadpool(self._service.pause, name))

    async def resume(self, request: Request) -> Response:
        """Resume a query."""
        name = request.path_params["name"]
        return JSONResponse(await run_in_threadpool(self._service.resume, name))

    # Answers

    async def answers(self, request: Request) -> Response:
        """Send answers: some of those that are kept, or all as they come."""
        query = self._service.catalog.query(request.path_params["name"])
        accepted = request.headers.get("accept", "")
        if _EVENTS in accepted:
            return await self._events(request, query)
        found = await run_in_threadpool(_selected, request, query)
        if _LINES in accepted:
            body = b"".join(_renamed(item, query) + b"\n" for item in found)
            # The ids of the others follow: answers are selected in one piece.
            first = {"First-Id": str(found[0].number)} if found else None
            return Response(body, headers=first, media_type=_LINES)
        pairs = (b'{"id":%d,"answer":%s}' % (i.number, _renamed(i, query)) for i in found)
        body = b'{"answers":[' + b",".join(pairs) + b"]}"
        return Response(body, media_type="application/json")

    async def _events(self, request: Request, query: RegisteredQuery) -> Response:
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        last = whole_number(request, "last", 0, most=_MOST)
        end = await asyncio.to_thread(query.job.stream.reader.end)
        start = max(end.number - last, 0)
        if after is not None:
            if not after.isascii() or not after.isdecimal() or len(after) > 18:
                raise MalformedError("the id of the last answer must be a number")
            start = int(after)
        events = self._followed(query, start)
        return EventSourceResponse(events, ping=_PING_S, send_timeout=_SEND_S, sep="\n")

    async def _followed(self, query: RegisteredQuery, after: int) -> AsyncIterator[ServerSentEvent]:
        job = query.job
        feed = self._feeds.setdefault(job, AnswerFeed(job.stream.reader))
        known = self._service.state(query)
        yield _state_event(known)

        def is_over() -> bool:
            return self._service.is_stopping or self._service.state(query) != known

        while not self._service.is_stopping:
            async for item in feed.follow(after, is_over):
                match item:
                    case MissedAnswers(first, last):
                        after = last
                        data = json.dumps({"missed": [first, last]})
                        yield ServerSentEvent(data, event="gap", sep="\n")
                    case FeedItem() if query.after is None or item.close > query.after:
                        after = item.number
                        line = _renamed(item, query).decode()
                        yield ServerSentEvent(line, event="answer", id=str(item.number), sep="\n")
                    case _:
                        continue
            state = self._service.state(query)
            if state != known:
                known = state
                yield _state_event(known)
            if known[0] == "deleted":
                return

    # Texts

    async def validate(self, request: Request) -> Response:
        """Check a query."""
        body = await json_body(request, self._service.options.largest_query)
        known = self._service.catalog.readable()
        result = await run_in_threadpool(validated, body, self._service.access, known)
        return JSONResponse(result)

    async def explain(self, request: Request) -> Response:
        """Explain a query."""
        body = await json_body(request, self._service.options.largest_query)
        shown, media_type = await run_in_threadpool(explained, body, self._service.access)
        if media_type == "application/json":
            return JSONResponse(shown)
        return Response(shown, media_type=media_type)

    async def vocabulary(self, _request: Request) -> Response:
        """List the words of the language."""
        return JSONResponse(vocabulary())

    # The service

    async def health(self, _request: Request) -> Response:
        """Say how the service is."""
        health = self._service.health()
        return JSONResponse(health, 503 if self._service.is_stopping else 200)

    async def metrics(self, _request: Request) -> Response:
        """Send the metrics."""
        text = await run_in_threadpool(exposition, self._service)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def openapi(self, _request: Request) -> Response:
        """Describe the API."""
        return JSONResponse(description())

    async def session(self, request: Request) -> Response:
        """Set the cookie with the token, which EventSource cannot send as a header."""
        body = await json_body(request, 4096)
        token = body.get("token") if isinstance(body, dict) else None
        if not isinstance(token, str):
            raise MalformedError("the body has no token", '{"token": "..."}')
        response = Response(status_code=204)
        if self._token is None:
            return response
        if not is_token(token, self._token):
            return problem(401, "the token is wrong")
        response.set_cookie(
            COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
        return response


def _route(path: str, handlers: dict[str, _Handler]) -> Route:
    """Return the route of a path, with a handler for each method."""

    async def handle(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await handlers[method](request)

    return Route(path, handle, methods=list(handlers))


def _file_route(path: str, file: Path) -> Route:
    """Return the route of a file of the console."""

    async def handle(_request: Request) -> Response:
        return FileResponse(file, headers={"Cache-Control": "no-cache"})

    return Route(path, handle, methods=["GET"])


def _made(place: str, made: dict[str, Any], *, is_new: bool) -> Response:
    headers = {"Location": f"{place}/{made['name']}"}
    return JSONResponse(made, 201 if is_new else 200, headers)


def _state_event(state: tuple[str, str | None]) -> ServerSentEvent:
    data = {"state": state[0], "reason": state[1]}
    return ServerSentEvent(json.dumps(data), event="state", sep="\n")


_QUERY_AT = len('{"query":')


def _renamed(item: FeedItem, query: RegisteredQuery) -> bytes:
    """Return the line of an answer, with the name of the query in place of that of an equal one."""
    own = json.dumps(query.plan.physical.name, ensure_ascii=False).encode()
    if item.line.startswith(own, _QUERY_AT):
        return item.line
    window = item.line.index(b',"window":')  # no name has a quote in it
    return b'{"query":' + own + item.line[window:]


def _selected(request: Request, query: RegisteredQuery) -> list[FeedItem]:
    """Return the answers that a request selects: the last, those of a time, or after an id."""
    limit = whole_number(request, "limit", 1000, most=_MOST)
    reader = query.job.stream.reader
    if "from" in request.query_params or "to" in request.query_params:
        low = whole_number(request, "from", -(1 << 60), least=-(1 << 60))
        high = whole_number(request, "to", 1 << 60, least=-(1 << 60))
        start = reader.offset_for(low) if low > -(1 << 60) else reader.starts()[0]
        items = (as_item(record) for _, record in reader.records(start))
        chosen: Iterator[FeedItem] = (each for each in items if low <= each.close <= high)
    elif "after" in request.query_params:
        after = whole_number(request, "after", 0)
        chosen = (as_item(record) for _, record in reader.from_number(after + 1))
    else:
        limit = whole_number(request, "last", 10, most=_MOST)
        chosen = (as_item(record) for record in reader.last(limit))
    found: deque[FeedItem] = deque()
    for item in chosen:
        if len(found) == limit:
            break
        if query.after is None or item.close > query.after:
            found.append(item)
    return list(found)


def application(service: StreamService, token: str | None, hosts: frozenset[str]) -> ASGIApp:
    """Return the application that serves the API and the console."""
    api = Api(service, token)
    files = {f"/{path.name}": path for path in CONSOLE.iterdir()}
    files["/"] = CONSOLE / "index.html"
    routes = [*api.routes(), *(_file_route(path, file) for path, file in files.items())]
    handlers: dict[Any, Any] = dict.fromkeys(
        (HTTPException, RspError, OSError, Exception), problem_of
    )
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=api.lifespan)
    largest = service.options.largest_body
    return Guard(app, Guarded(hosts, token, largest, frozenset(files)))
