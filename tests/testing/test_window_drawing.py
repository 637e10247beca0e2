"""Drawings of windows: what they show, and what is answered without being drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsp_engine.errors import CaseError
from rsp_engine.testing.case_file import CaseOutcome, differences, load_case
from rsp_engine.testing.window_drawing import WindowDrawing

EXAMPLE = Path(__file__).parents[2] / "examples" / "depot" / "depot.case"


def drawn(text: str) -> set[tuple[int, int]]:
    return set(WindowDrawing(text).windows)


def test_a_bracket_means_the_nearest_time():
    assert drawn(
        "t/s   -5   0    2.5  10   20\n"
        "s          a    b         c\n"
        "W0         (---------]              a b\n"
        "W1    [----)\n"
        "                     (----]         (not a window)\n"
    ) == {(0, 10_000), (-5_000, 0), (10_000, 20_000)}


def test_a_bracket_need_not_be_right_below_its_time():
    assert drawn("t/ms  1        1   4\n      a (--]   b\nW0    [-------------]\n") == {(1, 4)}


def test_a_second_ruler_has_times_of_its_own():
    assert drawn("t/min  0  9\nw      (--]\nt/h    0     1\nv      (-----]\n") == {
        (0, 540_000),
        (0, 3_600_000),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("W0  (---]", "the drawing of the windows has no times"),
        ("", "the drawing of the windows has no times"),
        ("t/s  0  10  later\nW0   (--]", "`t/s  0  10  later` is no ruler of times"),
        ("t/apples  0  10\nW0        (--]", "`t/apples  0  10` is no ruler of times"),
    ],
)
def test_a_drawing_without_times_is_refused(text, message):
    with pytest.raises(CaseError) as raised:
        WindowDrawing(text)
    assert raised.value.message == message


def test_a_case_whose_drawing_lacks_a_window_fails(tmp_path):
    text = EXAMPLE.read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines(keepends=True) if line.startswith("W1")]
    for name in ("ranking.rspql", "alerts.rspql"):
        (tmp_path / name).write_text((EXAMPLE.parent / name).read_text(encoding="utf-8"))
    path = tmp_path / "depot.case"
    path.write_text(text.replace(line, ""), encoding="utf-8")
    found = CaseOutcome(
        ('{"query": "q", "window": {"open": 300000, "close": 600000}, "rows": []}',)
    )
    assert "windows: answered, and not drawn\n+ 300000 to 600000" in differences(
        load_case(path), found
    )
    assert "not drawn" not in differences(load_case(EXAMPLE), found)
