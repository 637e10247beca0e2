"""RSP-JS and this engine answer the shared cases alike, or as the page says that they differ.

The page is `docs/explanation/from-rsp-js.md`. RSP-JS is a peer of the benchmarks, installed by
`make bench-peers PEERS=rsp-js` or by the soak; the test is skipped where it is not.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers.environment import ENVIRONMENTS, PEERS, UnavailableError
from rsp_engine import Engine, Solutions
from tests.documents import page
from tests.thoroughness import TIMES

pytestmark = pytest.mark.outside

PROGRAM = Path(__file__).with_name("rsp_js_case.mjs")
FOLDER = ENVIRONMENTS / "rsp-js"
EX = "http://example.org/"
Windows = dict[tuple[int, int], list[dict[str, str]]]


@pytest.fixture(scope="module")
def rsp_js() -> Path:
    """The folder of the modules of RSP-JS."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if TIMES > 1:
        try:
            PEERS["rsp-js"].install()
        except UnavailableError as reason:
            pytest.skip(str(reason))
    if not (FOLDER / "node_modules" / "rsp-js").is_dir():
        pytest.skip("RSP-JS is not installed: make bench-peers PEERS=rsp-js installs it")
    return FOLDER


def query(select: str, pattern: str, window: str, tail: str = "") -> str:
    """Return a query as both engines read it, but for the unit of its durations."""
    return "\n".join(
        [
            f"PREFIX : <{EX}>",
            "REGISTER RStream <out> AS",
            f"SELECT {select}",
            f"FROM NAMED WINDOW :w ON STREAM :s [{window}]",
            f"WHERE {{\nWINDOW :w {{ {pattern} }}\n}}",
            tail,
        ]
    )


def element(time: int, *triples: tuple[str, int]) -> tuple[int, str]:
    return time, " ".join(f"<{EX}{name}> <{EX}p> {value} ." for name, value in triples)


def there(folder: Path, text: str, elements: list[tuple[int, str]]) -> Windows:
    """Return what RSP-JS reports: the rows of windows by their edges."""
    case = json.dumps({"query": text, "elements": elements})
    command = ["node", str(PROGRAM), str(folder), case]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {(line["open"], line["close"]): line["rows"] for line in lines}


def here(text: str, elements: list[tuple[int, str]], **options: Any) -> Windows:
    """Return what this engine answers."""
    found: Windows = {}
    with Engine(**options) as engine:
        engine.register(text)
        engine.bind(f"{EX}s", elements)
        for answer in engine.run():
            assert isinstance(answer.content, Solutions)
            found[answer.window.open, answer.window.close] = [
                {name: getattr(term, "value", "") for name, term in row.bindings.items()}
                for row in answer.content.rows
            ]
    return found


def as_bags(windows: Windows) -> Windows:
    return {
        edges: sorted(rows, key=lambda row: sorted(row.items())) for edges, rows in windows.items()
    }


ELEMENTS = [
    element(1000, ("a", 3)),
    element(4000, ("b", 5), ("c", 1)),
    element(6000, ("a", 4)),
    element(9000, ("b", 2)),
    element(11000, ("c", 9)),
    element(16000, ("a", 1)),
    element(21000, ("end", 0)),
]
PLAIN = ("?s ?v", "?s :p ?v")
SHARED = {
    "a tumbling window": query(*PLAIN, "RANGE 10000 STEP 10000"),
    "a sliding window": query(*PLAIN, "RANGE 10000 STEP 5000"),
    "a filter": query("?s ?v", "?s :p ?v FILTER (?v > 2)", "RANGE 10000 STEP 10000"),
    "the best two": query(*PLAIN, "RANGE 10000 STEP 10000", "ORDER BY DESC(?v)\nLIMIT 2"),
    "groups": query(
        "?s (SUM(?v) AS ?n)", "?s :p ?v", "RANGE 10000 STEP 10000", "GROUP BY ?s\nORDER BY ?s"
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_both_engines_agree_on_shared_cases(name, rsp_js):
    text = SHARED[name]
    both = (as_bags if "ORDER BY" not in text else lambda windows: windows)(
        {edges: rows for edges, rows in there(rsp_js, text, ELEMENTS).items() if edges[0] >= 0}
    )
    found = here(text, ELEMENTS, bounds="[)")
    assert both == {
        edges: (as_bags(found) if "ORDER BY" not in text else found)[edges] for edges in both
    }
    assert len(both) >= 2, "a case that nothing answers shows nothing"


def test_an_element_at_an_edge_is_in_the_next_window_there(rsp_js):
    text = query(*PLAIN, "RANGE 10000 STEP 10000")
    elements = [element(10_000, ("a", 1)), element(20_001, ("end", 0)), element(30_001, ("end", 0))]
    assert list(there(rsp_js, text, elements)) == [(10_000, 20_000), (20_000, 30_000)]
    assert next(iter(here(text, elements, bounds="[)"))) == (10_000, 20_000)
    assert next(iter(here(text, elements))) == (0, 10_000)


def test_windows_that_an_element_jumps_over_are_not_reported_there(rsp_js):
    text = query(*PLAIN, "RANGE 10000 STEP 5000")
    elements = [element(7000, ("a", 1)), element(31_000, ("end", 0))]
    reported = [edges for edges, rows in there(rsp_js, text, elements).items() if rows]
    answered = [
        edges for edges, _ in here(text, elements, bounds="[)").items() if edges[1] < 31_000
    ]
    assert answered == [(0, 10_000), (5_000, 15_000)]
    assert set(reported) < set(answered)


def test_the_end_of_a_stream_closes_no_window_there(rsp_js):
    text = query(*PLAIN, "RANGE 10000 STEP 10000")
    elements = [element(1000, ("a", 1))]
    assert there(rsp_js, text, elements) == {}
    assert list(here(text, elements)) == [(0, 10_000)]


def test_windows_begin_before_the_first_instant_there(rsp_js):
    text = query(*PLAIN, "RANGE 10000 STEP 5000")
    elements = [element(1000, ("a", 1)), element(6000, ("end", 0))]
    assert list(there(rsp_js, text, elements)) == [(-5_000, 5_000)]
    assert all(edges[0] >= 0 for edges in here(text, elements))


def test_istream_is_read_and_answered_as_rstream_there(rsp_js):
    text = query(*PLAIN, "RANGE 10000 STEP 5000").replace("RStream", "IStream")
    elements = [
        element(6000, ("a", 1)),
        element(11_000, ("b", 1)),
        element(16_000, ("c", 1)),
        element(21_000, ("end", 0)),
    ]
    names = [row["s"] for row in there(rsp_js, text, elements)[10_000, 20_000]]
    assert f"{EX}b" in names
    first = here(text, elements, bounds="[)")
    assert [row["s"] for row in first[10_000, 20_000]] == [f"{EX}c"], "only what is new"


def test_the_page_tells_each_of_these_differences():
    told = page("from-rsp-js.md").read_text(encoding="utf-8")
    for words in ("`[open, close)`", "jumps over", "end of a stream", "before 0", "ISTREAM"):
        assert words in told, words
