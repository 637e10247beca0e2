"""The order of answers and dead letters: a run over splits writes them as the local driver does."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.io.sinks.dead_letters import dead_letter_json
from rsp_engine.io.sinks.jsonl import JSONL
from tests.drivers.split_runs import in_splits
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

EX = "http://example.org/"
HEAD = f"PREFIX : <{EX}> REGISTER "
BOTH = (
    "FROM NAMED WINDOW :w ON :s [RANGE {}ms STEP {}ms]"
    " FROM NAMED WINDOW :x ON :t [RANGE 7ms STEP 4ms]"
    " WHERE {{ WINDOW :w {{ ?a :p ?v }} WINDOW :x {{ ?b :p ?u }} }}"
)
ONE = "FROM NAMED WINDOW :w ON :{} [RANGE {}ms STEP {}ms] WHERE {{ WINDOW :w {{ ?a :p ?v }} }}"
CHAINED = HEAD + "STREAM :made AS CONSTRUCT { ?a :p ?v } " + ONE.format("s", 9, 3)
CHAIN_END = HEAD + "RSTREAM :end AS SELECT * " + ONE.format("made", 12, 6)


def line(time: int, subject: str, value: int) -> str:
    number = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<{EX}{subject}> <{EX}p> {number} <{EX}g/{time}> .\n"


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw a file in which time goes on, or back, and some lines are malformed."""
    steps = draw(st.sampled_from(((0, 1, 2, 3), (0, 1, 1, 2, 12, -1, -3, -9))))
    lines: list[str] = []
    now = draw(st.integers(0, 10))
    for step in draw(st.lists(st.sampled_from((*steps, None)), max_size=25)):
        if step is None:
            lines.append(f"nonsense {len(lines)}\n")
            continue
        now = max(0, now + step)
        lines.append(line(now, draw(st.sampled_from("ab")), draw(st.integers(1, 2))))
    return "".join(lines)


@st.composite
def queries(draw: st.DrawFn) -> list[str]:
    """Draw queries of one stream or of both; windows that lie apart may be due together."""
    sizes = st.lists(st.integers(1, 20), min_size=2, max_size=2)
    r2s = st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM"))
    asked = [f"{HEAD}{draw(r2s)} :q0 AS SELECT * {BOTH.format(*draw(sizes))}"]
    for number in range(1, draw(st.integers(1, 3))):
        body = ONE.format(draw(st.sampled_from("st")), *draw(sizes))
        asked.append(f"{HEAD}{draw(r2s)} :q{number} AS SELECT * {body}")
    return [*asked, CHAINED, CHAIN_END] if draw(st.integers(0, 3)) == 0 else asked


def output(asked: Sequence[str], streams: dict[str, list[Path]], **options: Any) -> tuple[str, str]:
    """Return the answers and the dead letters of a run as they are written."""
    letters: list[str] = []
    engine = Engine(dead_letter=lambda found: letters.append(dead_letter_json(found)), **options)
    for text in asked:
        engine.register(text)
    for stream, paths in streams.items():
        for path in paths:
            engine.bind(stream, str(path))
    writer = JSONL.writer()
    return "".join(str(writer(answer)) for answer in engine.run()), "".join(letters)


def written(folder: Path, texts: Sequence[Sequence[str]]) -> dict[str, list[Path]]:
    """Write the files of two streams."""
    found: dict[str, list[Path]] = {}
    for stream, held in zip("st", texts, strict=True):
        for number, text in enumerate(held):
            path = folder / f"{stream}{number}.nq"
            path.write_text(text, encoding="utf-8")
            found.setdefault(EX + stream, []).append(path)
    return found


options = st.fixed_dictionaries(
    {
        "max_delay": st.sampled_from((0, 3, 12)),
        "report": st.sampled_from(("nonempty", "every")),
        "bounds": st.sampled_from(("(]", "[)")),
    }
)
both_streams = st.tuples(*[st.lists(files(), min_size=1, max_size=2)] * 2)


@examples(60)
@given(queries(), both_streams, options, st.data())
def test_splits_and_cuts_leave_every_byte_where_it_is(asked, texts, options, data):
    with TemporaryDirectory() as folder:
        streams = written(Path(folder), texts)
        with in_splits(are_split=False):
            expected = output(asked, streams, **options)
        assert output(asked, streams, **options) == expected
        size = data.draw(st.sampled_from((1, 200, 1000, 100_000)))
        cuts = data.draw(st.sampled_from(((), range(1000))))
        with in_splits(size=size, count=data.draw(st.integers(1, 3)), cuts=cuts):
            assert output(asked, streams, **options) == expected


@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_windows_found_to_lie_between_others_are_answered_by_all_queries_at_once(size, tmp_path):
    """1 and 31 are in the first and the fourth window; 32 shows that two are in between."""
    window = ONE.format("s", 2, 10)
    asked = [
        f"{HEAD}RSTREAM :q{n} AS SELECT {shown} {window}" for n, shown in ((0, "*"), (1, "?v"))
    ]
    times = (1, 31, 32, 45)
    streams = written(tmp_path, (["".join(line(at, "a", 1) for at in times)], []))
    with in_splits(are_split=False):
        expected = output(asked, streams, report="every")
    found = [json.loads(each) for each in expected[0].splitlines()]
    closes = [(each["query"][-1], each["window"]["close"]) for each in found]
    between = [("0", 12), ("0", 22), ("1", 12), ("1", 22)]
    assert closes == [("0", 2), ("1", 2), *between, ("0", 32), ("1", 32)]
    with in_splits(size=size):
        assert output(asked, streams, report="every") == expected


def raws(letters: str) -> list[str]:
    return [json.loads(each)["raw"].strip() for each in letters.splitlines()]


@pytest.mark.parametrize("size", [1, 100, 1000, 100_000])
def test_a_letter_waits_for_what_other_sources_have_before_it(size, tmp_path):
    """No window closes, so all elements of a split are taken together; letters are not.

    s    1 2 one 3 ... 20 two 21
    t         5 6 three 7 8 9 four 10
    """
    first = [*(line(at, "a", 1) for at in (1, 2)), "one\n"]
    first += [*(line(at, "a", 1) for at in range(3, 21)), "two\n", line(21, "a", 1)]
    second = [*(line(at, "b", 1) for at in (5, 6)), "three\n"]
    second += [*(line(at, "b", 1) for at in (7, 8, 9)), "four\n", line(10, "b", 1)]
    streams = written(tmp_path, (["".join(first)], ["".join(second)]))
    asked = [
        f"{HEAD}RSTREAM :q{stream} AS SELECT * {ONE.format(stream, 100, 100)}" for stream in "st"
    ]
    with in_splits(are_split=False):
        expected = output(asked, streams)
    assert raws(expected[1]) == ["one", "three", "four", "two"]
    with in_splits(size=size):
        assert output(asked, streams) == expected
