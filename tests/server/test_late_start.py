"""A query that is registered late, from an event time, from the beginning, or from now."""

import json
import random
from functools import partial

import pytest

from tests.server.served import EX, eventually, lines_of_run, served

pytestmark = pytest.mark.outside

SHAPES = {
    "ranking": """REGISTER RSTREAM :{name} AS SELECT ?room ?t
FROM NAMED WINDOW :w ON :readings [RANGE 4s STEP 2s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} }} ORDER BY DESC(?t) LIMIT 3""",
    "inserted": """REGISTER ISTREAM :{name} AS SELECT ?room ?t
FROM NAMED WINDOW :w ON :readings [RANGE 6s STEP 1s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t . FILTER(?t > 500) }} }}""",
    "deleted": """REGISTER DSTREAM :{name} AS SELECT ?room
FROM NAMED WINDOW :w ON :readings [RANGE 5s STEP 2s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} }}""",
    "average": """REGISTER RSTREAM :{name} AS SELECT ?room (AVG(?t) AS ?mean)
FROM NAMED WINDOW :w ON :readings [RANGE 7s STEP 3s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} }} GROUP BY ?room ORDER BY DESC(?mean) LIMIT 2""",
    "windows": """REGISTER RSTREAM :{name} AS SELECT ?room ?t ?u
FROM NAMED WINDOW :w ON :readings [RANGE 2s STEP 2s]
FROM NAMED WINDOW :v ON :readings [RANGE 8s STEP 2s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} WINDOW :v {{ ?room :temperature ?u }} }}
ORDER BY ?room ?t ?u LIMIT 4""",
}
ELEMENTS = 1_500
MIDDLE = 1_000 + 50 * ELEMENTS // 2


def text_of(shape, name):
    return f"PREFIX : <{EX}>\n" + SHAPES[shape].format(name=name)


def readings(begin, end):
    choice = random.Random(7)  # noqa: S311 - values of a test
    every = [
        (
            1_000 + 50 * number - choice.randrange(400),
            f"<{EX}room/{number % 13}> <{EX}temperature> {choice.randrange(1000)} .",
        )
        for number in range(ELEMENTS)
    ]
    return every[begin:end]


def all_lines(client, name, last):
    found = [each.line for each in client.last(name, 10_000)]
    return found if found and found[-1] == last else None


def close_of(line):
    return json.loads(line)["window"]["close"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("late")
    with served(folder) as server, server.client() as client:
        client.declare("readings", f"{EX}readings", keep={"bytes": 1 << 20})
        client.push("readings", readings(0, ELEMENTS // 2))
        for shape in SHAPES:  # these run all the time
            client.submit(text_of(shape, shape), start="earliest", options={"max_delay": "1s"})
        yield server, folder


def test_a_query_registered_late_gives_the_bytes_that_it_would_have_given(filled):
    server, folder = filled
    with server.client() as client:
        for shape in SHAPES:
            for start in (MIDDLE - 12_345, MIDDLE, "earliest", "now"):
                name = f"{shape}-{start}"
                # The same name in answers; another group, so that it is evaluated by itself.
                client.submit(
                    text_of(shape, shape),
                    name=name,
                    start=start,
                    group=f"late-{shape}-{start}",
                    options={"max_delay": "1s"},
                )
        client.push("readings", readings(ELEMENTS // 2, ELEMENTS))
        for shape in SHAPES:
            query = client.query(f"{shape}-now")
            assert query["start"]["after"] < MIDDLE
            always = eventually(partial(settled, client, shape))
            assert len(always) > 10
            for start in (MIDDLE - 12_345, MIDDLE, "earliest", "now"):
                name = f"{shape}-{start}"
                after = client.query(name)["start"]["after"]
                expected = [line for line in always if after is None or close_of(line) > after]
                got = eventually(partial(all_lines, client, name, always[-1]))
                assert got == expected, name
                assert after is None or len(got) < len(always)
        # And all of this is what a run over the recorded log prints.
        text, flags = text_of("average", "average"), ["--max-delay", "1s"]
        printed = lines_of_run(server, folder, ["readings"], text, flags=flags)
        told = [each.line for each in client.last("average", 10_000)]
        assert told == printed[: len(told)]


def settled(client, name):
    """Return the answers of a query, once its watermark has passed all elements."""
    status = client.query(name)["status"]
    if status["elements"] < ELEMENTS or client.query(name)["answers"]["last"] != status["windows"]:
        return None
    return [each.line for each in client.last(name, 10_000)]


def test_a_window_that_is_not_wholly_kept_is_left_out(tmp_path):
    with served(tmp_path) as server, server.client() as client:
        client.declare("readings", f"{EX}readings", keep={"bytes": 16 << 10})
        client.submit(text_of("ranking", "always"), start="earliest")
        for begin in range(0, ELEMENTS, 50):
            client.push("readings", readings(begin, begin + 50))
            eventually(partial(has_read, client, "always", begin + 50))
        client.push("readings", [(1_000 + 50 * ELEMENTS + 9_000, "<urn:a> <urn:b> 1 .")])
        eventually(lambda: client.streams()[0]["log"]["bytes"] <= 16 << 10)
        kept = eventually(lambda: client.streams()[0]["log"]["kept_from"])
        assert kept > 1_000
        client.submit(text_of("ranking", "always"), name="late", start="earliest", group="late")
        always = eventually(lambda: settled_after(client, "always", 78_000))
        late = eventually(lambda: settled_after(client, "late", 78_000))
        assert late == always[-len(late) :]
        assert 0 < len(late) < len(always)
        opens = 4_000
        assert all(close_of(line) - opens >= kept for line in late)
        first = close_of(late[0])
        before = [line for line in always if close_of(line) < first]
        assert all(close_of(line) - opens < kept for line in before)


def has_read(client, name, count):
    return client.query(name)["status"]["elements"] >= count


def settled_after(client, name, close):
    found = [each.line for each in client.last(name, 10_000)]
    return found if found and close_of(found[-1]) >= close else None
