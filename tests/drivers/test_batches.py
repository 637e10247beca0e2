"""Batches: elements reduced together give the same answers as one by one."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from unittest.mock import patch

from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.drivers.intake import Intake
from rsp_engine.drivers.local import LocalDriver
from rsp_engine.evaluators.step import Step
from rsp_engine.grammar import check
from rsp_engine.io.sources.files.nquads import NQuads
from rsp_engine.options import WindowOptions
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from tests.drivers.split_runs import RemakeableRun
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rsp_engine.drivers.splits.segments import Segment
    from rsp_engine.evaluators.step import PendingAnswer
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.model.answers import Answer
    from rsp_engine.monitor.run_monitor import Counts

EX = "http://example.org/"
BAD = "this is no quad\n"
NESTED = f"<{EX}a> <{EX}p> <<( <{EX}a> <{EX}p> <{EX}a> )>> <{EX}g/%d> .\n"
PROV = f'<{EX}other> <http://www.w3.org/ns/prov#generatedAtTime> "7" .\n'


@dataclass(frozen=True, slots=True)
class Chunks:
    """An input that arrives in pieces."""

    pieces: tuple[bytes, ...]
    name: str = "a.nq"

    def chunks(self) -> Iterator[bytes]:
        return iter(self.pieces)


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of a run: answers and dead letters in order, and the counts."""

    happened: list[object]
    counts: Counts


AHEAD = (0, 1, 1, 1, 2, 2, 3)
ANY = (*AHEAD, 12, 40, -1, -3, -9)


@st.composite
def texts(draw: st.DrawFn) -> list[str]:
    """Draw lines of N-Quads in which time goes on; or now and then stands still or goes back."""
    steps, least = draw(st.sampled_from((AHEAD, ANY))), draw(st.sampled_from((0, 30)))
    lines, now = [], draw(st.integers(0, 10))
    for step in draw(st.lists(st.sampled_from(steps), min_size=least, max_size=60)):
        now = max(0, now + step)
        subject = draw(st.sampled_from((f"<{EX}a>", f"<{EX}b>", "_:x")))
        value = draw(st.sampled_from(('"1"', '"01"', '"2"')))
        number = f"{value}^^<http://www.w3.org/2001/XMLSchema#integer>"
        lines.append(f"{subject} <{EX}p> {number} <{EX}g/{now}> .\n")
    odd = st.tuples(st.integers(0, 60), st.sampled_from((BAD, NESTED % now, PROV, "# no quad\n")))
    for index, line in draw(st.lists(odd, max_size=2)) if draw(st.booleans()) else ():
        lines.insert(index, line)
    return lines


@st.composite
def pieces(draw: st.DrawFn) -> tuple[bytes, ...]:
    """Cut a text into the pieces in which it arrives."""
    whole = "".join(draw(texts())).encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=3)))
    edges = [0, *cuts, len(whole)]
    found = (whole[a:b] for a, b in pairwise(edges))
    return tuple(piece for piece in found if piece)


sizes = st.integers(1, 40)
time_frames = st.builds("[RANGE {}ms STEP {}ms]".format, sizes, sizes)
count_frames = st.builds("[ELEMENTS {} STEP {}]".format, st.integers(1, 3), st.integers(1, 3))
PATTERNS = ("?s :p ?v", "?s :p ?v . ?s :p ?u")


@st.composite
def queries(draw: st.DrawFn, number: int) -> str:
    """Draw a query over one window or two, mostly of time; some rank, and later arrivals first."""
    kinds = time_frames | count_frames if draw(st.integers(0, 3)) == 0 else time_frames
    frames = draw(st.lists(kinds, min_size=1, max_size=2))
    windows = " ".join(
        f"FROM NAMED WINDOW :{name} ON :s {frame}"
        for name, frame in zip("wx", frames, strict=False)
    )
    pattern = draw(st.sampled_from(PATTERNS))
    parts = " ".join(f"WINDOW :{name} {{ {pattern} }}" for name in "wx"[: len(frames)])
    r2s = draw(st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM")))
    order = draw(st.sampled_from(("", " ORDER BY DESC(?v) LIMIT 2")))
    head = f"PREFIX : <{EX}> REGISTER {r2s} :q{number} AS SELECT *"
    return f"{head} {windows} WHERE {{ {parts} }}{order}"


options = st.builds(
    QueryOptions,
    st.builds(
        WindowOptions,
        bounds=st.sampled_from(("(]", "[)")),
        t0=st.integers(-5, 15),
        report=st.sampled_from(("nonempty", "every")),
    ),
)


def run(
    asked: list[str],
    settings: QueryOptions,
    source: ElementSource,
    max_delay: int,
    *,
    are_split: bool = False,
) -> Run:
    steps = [Step(plan(check(text), text, "<query>", settings).physical) for text in asked]
    happened: list[object] = []
    sources = {f"{EX}s": [source]}
    made = RemakeableRun(steps, sources, happened.append, max_delay, are_split=are_split)
    driver = LocalDriver(made)
    happened.extend(driver.run())
    return Run(happened, driver.counts)


@contextmanager
def noted_segments() -> Iterator[list[Segment]]:
    """Note the segments that are taken."""
    segments: list[Segment] = []
    take = Intake._take_segment

    def noted(intake: Intake, stream: str, segment: Segment) -> Iterator[Answer | PendingAnswer]:
        segments.append(segment)
        return take(intake, stream, segment)

    with patch.object(Intake, "_take_segment", noted):
        yield segments


@examples(40)
@given(st.data(), options, pieces(), st.integers(0, 12))
def test_batches_change_nothing(data, chosen, found, max_delay):
    """The same answers and dead letters, in the same order, and the same counts."""
    number = data.draw(st.integers(1, 2))
    asked = [data.draw(queries(index)) for index in range(number)]
    with noted_segments() as segments:
        in_batches = run(asked, chosen, NQuads(Chunks(found)), max_delay, are_split=True)
    together = max((segment.elements for segment in segments), default=0)
    event(f"{'some' if together > 1 else 'no'} elements were taken together")
    assert in_batches == run(asked, chosen, NQuads(Chunks(found)), max_delay)


QUERY = f"""PREFIX : <{EX}> SELECT * FROM NAMED WINDOW :w ON :s [RANGE 10ms]
    WHERE {{ WINDOW :w {{ ?s ?p ?o }} }}"""


def source(times: Iterable[int]) -> NQuads:
    lines = [f"<{EX}a> <{EX}p> <{EX}b> <{EX}g/{time}> .\n" for time in times]
    return NQuads(Chunks(("".join(lines).encode(),)))


def test_elements_between_two_closing_windows_are_taken_together():
    """0    10    20        [RANGE 10ms STEP 10ms]: the first and the last may go on elsewhere."""
    with noted_segments() as segments:
        run([QUERY], QueryOptions(), source(range(1, 23)), 0, are_split=True)
    found = [(segment.timestamp, segment.high, segment.elements) for segment in segments]
    assert found == [(2, 10, 9), (11, 20, 10), (21, 21, 1)]


def test_the_watermark_of_a_segment_is_that_of_its_latest_element():
    """max_delay 15    read: 31 32 33 39 34 15 35    39 closes (10,20], so that 15 is late."""
    found = run([QUERY], QueryOptions(), source([31, 32, 33, 39, 34, 15, 35]), 15, are_split=True)
    assert found.counts.dead == {"late": 1}
