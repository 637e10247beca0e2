"""The demo in a browser: the service, with streams and a SPARQL server that change all the time.

The stream and the remote data are those of `rsp demo`, replayed over and over. Two queries rank the
same users within the same budget and differ in the policy, so that the console can compare them; a
third one ranks by the stream alone.
"""

from __future__ import annotations

import logging
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from rsp_engine.client import Client
from rsp_engine.errors import RspError
from rsp_engine.experiments.datasets.dataset import MENTIONS_PREDICATE, STEP, USER
from rsp_engine.experiments.datasets.generator import generate
from rsp_engine.experiments.demonstration import QUERY, server, update_server
from rsp_engine.server.options import ServeOptions
from rsp_engine.server.web.listener import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.experiments.datasets.dataset import Dataset

__all__ = ["WebSetting", "demonstrate_in_browser"]

_LOG = logging.getLogger("rsp")
_PATIENCE_S = 5
_PEOPLE, _POSTS = "http://example.org/people", "http://example.org/posts"
_POST = "http://example.org/post/"
_OTHERS = ("WSJ-LRU", "AT-TSM")
"""What the policy is compared with: the first that is another one."""
MENTIONED = """PREFIX schema: <https://schema.org/>
PREFIX : <http://example.org/>
REGISTER RSTREAM :mostMentioned AS
SELECT ?user (COUNT(?post) AS ?mentions)
FROM NAMED WINDOW :recent ON STREAM :posts [RANGE 5m STEP 60s]
WHERE { WINDOW :recent { ?post schema:mentions ?user } }
GROUP BY ?user
ORDER BY DESC(?mentions)
LIMIT 10
"""


@dataclass(frozen=True, slots=True)
class WebSetting:
    """The settings. `speed` is a factor: 60 replays a minute in a second. Port 0 is a free one."""

    policy: str = "AT-TSM"
    budget: int = 7
    speed: float = 60
    port: int = 0


def demonstrate_in_browser(setting: WebSetting, ready: Callable[[str], None]) -> None:
    """Serve the demo until a signal stops it; `ready` is called with its address."""
    with ExitStack() as stack:
        dataset = generate(seed=1)
        remote = stack.enter_context(server())
        update_server(remote, dataset, -1, 0)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        replay = _Replay(setting, dataset, remote)
        stack.callback(replay.stop)

        def started(address: str) -> None:
            replay.start(address)
            ready(address)

        data = str(Path(folder) / "served")
        serve(ServeOptions(data=data, port=setting.port, allow=(remote,)), started, {})


class _Replay:
    """The life of the demo: mentions are pushed, and the remote side changes, step by step."""

    def __init__(self, setting: WebSetting, dataset: Dataset, remote: str) -> None:
        self._setting, self._dataset, self._remote = setting, dataset, remote
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replay", daemon=True)
        self._address = ""

    def start(self, address: str) -> None:
        self._address = address
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        with Client(self._address, token="") as client:
            try:
                self._register(client)
                for number, (now, batch) in enumerate(self._steps()):
                    client.push("posts", batch, key=str(number))
                    if self._is_over.wait(STEP / 1000 / self._setting.speed):
                        return
                    self._change(now)
            except (RspError, OSError) as error:
                # A signal that stops the demo may reach the SPARQL server first.
                if not self._is_over.wait(_PATIENCE_S):
                    _LOG.warning("the demo cannot go on: %s", error)

    def _register(self, client: Client) -> None:
        policy, text = self._setting.policy, QUERY.read_text(encoding="utf-8")
        other = next(name for name in _OTHERS if name != policy)
        client.declare("posts", _POSTS, keep={"bytes": 64 << 20})
        for name, chosen in (("growingUsers", policy), (f"growingUsers-{other}", other)):
            options = {
                "policy": chosen,
                "budget": self._setting.budget,
                "oracle": True,
                "elected": True,
            }
            services = {_PEOPLE: f"{self._remote}/query"}
            client.submit(text, name=name, start="earliest", options=options, services=services)
        client.submit(MENTIONED, start="earliest")

    def _steps(self) -> Iterator[tuple[int, list[tuple[int, str]]]]:
        """Yield the mentions of each step with its end, in event time that begins at 0."""
        dataset = self._dataset
        times, users = dataset.mention_times.tolist(), dataset.mention_users.tolist()
        steps = dataset.duration // STEP
        for lap in count():
            begin, position = lap * steps * STEP, 0
            for step in range(steps):
                batch, until = [], (step + 1) * STEP
                while position < len(times) and times[position] <= until:
                    post = f"<{_POST}{lap}-{position}>"
                    user = f"<{USER}{dataset.names[users[position]]}>"
                    graph = f"{post} <{MENTIONS_PREDICATE}> {user} ."
                    batch.append((begin + max(times[position], 1), graph))
                    position += 1
                if batch:
                    yield until, batch

    def _change(self, now: int) -> None:
        """Let the remote side be as at a time of the recording."""
        before = now - STEP if now > STEP else -1
        update_server(self._remote, self._dataset, before, now)
