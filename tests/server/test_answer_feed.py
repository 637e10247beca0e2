"""A feed of answers with many clients, in this process."""

import asyncio

from rsp_engine.io.sources.live.log.extent import LogExtent
from rsp_engine.io.sources.live.log.log_reader import LogReader
from rsp_engine.io.sources.live.log.stream_log import Keep, StreamLog
from rsp_engine.io.sources.live.records import Message, SpoolRecord
from rsp_engine.server.web.answer_feed import AnswerFeed, FeedItem, MissedAnswers

ANSWERS = 300


def extent(record):
    return LogExtent(1, 1, arrival=record.arrival)


def answer(number):
    return SpoolRecord(number, number, Message(b'{"query":"q"}', str(1_000 * number)))


async def collect(feed, after):
    """Return the ids that a client gets, until it has the last one."""
    got = []
    async for item in feed.follow(after, lambda: False):
        match item:
            case FeedItem():
                got.append(item.number)
            case MissedAnswers(first, last):
                got += [-number for number in range(first, last + 1)]
        if got and got[-1] == ANSWERS:
            return got
    return got


async def feed_clients(log, reader, starts):
    feed = AnswerFeed(reader)

    async def write():
        for number in range(1, ANSWERS + 1):
            await asyncio.to_thread(log.append, [answer(number)])

    clients = [collect(feed, after) for after in starts]
    *collected, _ = await asyncio.gather(*clients, write())
    return collected


def test_clients_that_come_at_once_get_each_answer_once(tmp_path):
    log, reader = StreamLog(tmp_path, extent), LogReader(tmp_path, "q")
    for got in asyncio.run(feed_clients(log, reader, [0] * 20)):
        assert got == list(range(1, ANSWERS + 1))
    log.close()
    reader.close()


def test_a_client_is_told_which_answers_are_no_longer_kept(tmp_path):
    log, reader = StreamLog(tmp_path, extent, Keep(4096), file_bytes=1024), LogReader(tmp_path, "q")
    log.append([answer(number) for number in range(1, 200)])
    log.append([answer(number) for number in range(200, ANSWERS + 1)])
    log.tidy(0)
    first = reader.first()

    async def follow():
        return await collect(AnswerFeed(reader), 0)

    got = asyncio.run(follow())
    assert first > 1
    assert got == [*(-n for n in range(1, first)), *range(first, ANSWERS + 1)]
    log.close()
    reader.close()
