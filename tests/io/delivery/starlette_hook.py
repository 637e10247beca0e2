"""A webhook by Starlette and uvicorn, in a process of its own: `... starlette_hook PORT FILE`.

It appends the id and the body of each post to a file, and accepts it then.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from tests.data import PROJECT
from tests.io.delivery.receivers import Received
from tests.io.live.servers import free_port, wait_for_port

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["StarletteHook"]


class StarletteHook:
    """The server, which can go away and come back."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "posted.jsonl"
        self._file.touch()
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/hook"

    @property
    def received(self) -> list[Received]:
        """What was accepted so far."""
        lines = self._file.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = [json.loads(line) for line in lines if line.endswith("\n")]
        return [Received(name, body.encode(), {}) for name, body in whole]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        command = [sys.executable, "-m", __name__, str(self._port), str(self._file)]
        self._process = subprocess.Popen(command, cwd=PROJECT)  # noqa: S603 - our own server
        wait_for_port(self._port, 60)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def main(port: int, path: Path) -> None:
    def take(request: Request, body: bytes) -> None:
        time.sleep(0.002)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([request.headers["RSP-Delivery-Id"], body.decode()]) + "\n")

    async def post(request: Request) -> Response:
        take(request, await request.body())
        return Response(status_code=204)

    app = Starlette(routes=[Route("/hook", post, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
