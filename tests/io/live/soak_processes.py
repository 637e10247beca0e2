"""A slow engine, and senders that are faster.

    python -m tests.io.live.soak_processes listen URL FOLDER LAST PAUSE
    python -m tests.io.live.soak_processes ws|sse PORT MESSAGES PADDING
    python -m tests.io.live.soak_processes mqtt PORT MESSAGES PADDING QOS SECONDS

The engine pauses after each answer until there is a file `fast` in its folder. Servers send all
messages as fast as the engine reads them, the publisher within SECONDS.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.io.live.numbered_messages import message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


def listen(url: str, folder: Path, last: int, pause: float) -> None:
    from rsp_engine.io.sinks import open_sink
    from tests.io.live.engine_process import new_engine

    engine = new_engine(url, folder, "local")
    sink = open_sink("jsonl", str(folder / "answers.jsonl"), "SELECT", keep=True)
    for answer in engine.run([sink]):
        sink.write(answer)
        if answer.window.close >= 1000 * last:
            engine.stop()
        if not (folder / "fast").exists():
            time.sleep(pause)
    sink.close()
    (folder / "elements.txt").write_text(str(engine.counts.elements))


def texts(messages: int, padding: int) -> Iterator[str]:
    for number in range(messages):
        yield message(number, is_last=number == messages - 1, padding=padding)


async def serve_websocket(port: int, messages: int, padding: int) -> None:
    from websockets.asyncio.server import ServerConnection, serve

    async def push(connection: ServerConnection) -> None:
        for text in texts(messages, padding):
            await connection.send(text)
        await connection.wait_closed()

    async with serve(push, "127.0.0.1", port, ping_interval=None):
        await asyncio.Future()


def serve_events(port: int, messages: int, padding: int) -> None:
    import uvicorn
    from sse_starlette import EventSourceResponse
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def feed(_request: Any) -> EventSourceResponse:
        async def events() -> AsyncIterator[dict[str, Any]]:
            for number, text in enumerate(texts(messages, padding)):
                yield {"id": str(number), "data": text}
            await asyncio.sleep(3600)

        return EventSourceResponse(events())

    app = Starlette(routes=[Route("/feed", feed)])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


def publish(port: int, messages: int, padding: int, qos: int, seconds: float) -> None:
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.max_queued_messages_set(0)
    client.max_inflight_messages_set(1_000)
    client.connect("127.0.0.1", port)
    client.loop_start()
    begun, pending = time.monotonic(), []
    for number, text in enumerate(texts(messages, padding)):
        is_last = number == messages - 1
        pending.append(client.publish("soak", text, qos=1 if is_last else qos))
        time.sleep(max(0.0, begun + seconds * number / messages - time.monotonic()))
        if len(pending) > 500:
            pending.pop(0).wait_for_publish(60)
    for each in pending:
        each.wait_for_publish(60)
    client.disconnect()
    client.loop_stop()


def main(command: str, *arguments: str) -> None:
    match command:
        case "listen":
            listen(arguments[0], Path(arguments[1]), int(arguments[2]), float(arguments[3]))
        case "ws":
            asyncio.run(serve_websocket(*map(int, arguments)))
        case "sse":
            serve_events(*map(int, arguments))
        case _:
            port, messages, padding, qos = map(int, arguments[:4])
            publish(port, messages, padding, qos, float(arguments[4]))


if __name__ == "__main__":
    main(*sys.argv[1:])
