"""On Spark, answers and dead letters are written as by the local driver, byte for byte."""

from __future__ import annotations

from random import Random

import pytest

from tests.drivers.test_output_order import (
    BOTH,
    CHAIN_END,
    CHAINED,
    HEAD,
    ONE,
    line,
    output,
    written,
)

PLAIN = [
    HEAD + "RSTREAM :q0 AS SELECT * " + BOTH.format(20, 10),
    HEAD + "RSTREAM :q1 AS SELECT * " + ONE.format("t", 30, 10),
    HEAD + "RSTREAM :q2 AS SELECT * " + ONE.format("s", 15, 5) + " ORDER BY DESC(?v) LIMIT 2",
]


def text(seed: int) -> str:
    """Write a stream in which some lines are malformed, and some elements late."""
    chance, lines = Random(seed), []  # noqa: S311 - a story
    for now in range(1, 300):
        if chance.random() < 0.1:
            lines.append(f"nonsense {now}\n")
        late = chance.choice((0, 0, 0, 0, 2, 40))
        lines.append(line(max(now - late, 1), chance.choice("abc"), chance.randrange(9)))
    return "".join(lines)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("asked", "size"), [(PLAIN, 3_000), ([*PLAIN, CHAINED, CHAIN_END], 9_000)])
def test_every_byte_is_where_the_local_driver_has_it(asked, size, tmp_path):
    streams = written(tmp_path, ([text(1), text(2)], [text(3)]))
    expected = output(asked, streams, max_delay=5)
    letters = expected[1]
    assert letters.count("late") > 20
    assert letters.count("nonsense") > 50
    found = output(asked, streams, max_delay=5, runner="spark", split_bytes=size)
    assert found == expected
