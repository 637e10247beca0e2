"""The feed of answers, with clients that leave while others wait."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

from rsp_engine.server.web.answer_feed import AnswerFeed


class Nothing:
    """A log without records."""

    def end(self):
        return SimpleNamespace(offset=0, number=0)


def test_clients_that_leave_do_not_disturb_those_that_wait():
    """A server may cancel a client again while it is still being cancelled."""
    choice = random.Random(1)  # noqa: S311 - who leaves is no secret

    async def follow(feed):
        async for _ in feed.follow(0, lambda: False):
            pass

    async def come_and_go():
        log: Any = Nothing()
        feed = AnswerFeed(log)
        clients = [asyncio.create_task(follow(feed)) for _ in range(20)]
        left = []
        await asyncio.sleep(0.05)
        for _ in range(300):
            client = clients.pop(choice.randrange(len(clients)))
            left.append(client)
            waking = asyncio.create_task(feed.wake())
            for _ in range(choice.randrange(1, 4)):
                client.cancel()
                await asyncio.sleep(0)
            await waking
            clients.append(asyncio.create_task(follow(feed)))
            if choice.random() < 0.1:
                await asyncio.sleep(0.005)
        disturbed = [client.exception() for client in clients if client.done()]
        for client in clients:
            client.cancel()
        async with asyncio.timeout(30):
            results = await asyncio.gather(*left, *clients, return_exceptions=True)
        others = [each for each in results if not isinstance(each, asyncio.CancelledError)]
        return disturbed, others

    assert asyncio.run(come_and_go()) == ([], [])
