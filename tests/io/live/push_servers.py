"""Servers that push messages: `python -m tests.io.live.push_servers ws|sse PORT MESSAGES SENT`.

The first SENT of MESSAGES messages are sent, then nothing more. A client that resumes after an id
gets the messages after it, and the last few before it again.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests.io.live.numbered_messages import message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

AGAIN = 50
"""How many messages are repeated to a client that resumes."""


def first(last: str | None) -> int:
    """Return the first number to send to a client that resumes after an id."""
    return max(0, int(last) + 1 - AGAIN) if last else 0


async def serve_websocket(port: int, messages: int, sent: int) -> None:
    from websockets.asyncio.server import ServerConnection, serve

    async def push(connection: ServerConnection) -> None:
        assert connection.request is not None
        parameters = parse_qs(urlsplit(connection.request.path).query)
        for number in range(first(parameters.get("after", [None])[0]), sent):
            await connection.send(message(number, is_last=number == messages - 1))
        await connection.wait_closed()

    async with serve(push, "127.0.0.1", port):
        await asyncio.Future()


def serve_events(port: int, messages: int, sent: int) -> None:
    import uvicorn
    from sse_starlette import EventSourceResponse
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def feed(request: Any) -> EventSourceResponse:
        async def events() -> AsyncIterator[dict[str, Any]]:
            for number in range(first(request.headers.get("last-event-id")), sent):
                text = message(number, is_last=number == messages - 1)
                yield {"id": str(number), "data": text}
            await asyncio.sleep(3600)

        return EventSourceResponse(events())

    app = Starlette(routes=[Route("/feed", feed)])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


def main(kind: str, port: int, messages: int, sent: int) -> None:
    if kind == "ws":
        asyncio.run(serve_websocket(port, messages, sent))
    else:
        serve_events(port, messages, sent)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
