"""The report: one file that needs nothing else, and says what was measured."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from rsp_engine.errors import RspError, SinkError, StateError
from rsp_engine.experiments.process_pool import in_turn
from rsp_engine.experiments.report.figures import Bars, Curves, Labels, Lines, varied_figure
from rsp_engine.experiments.report.measured import Median, Point, measured
from rsp_engine.experiments.report.page import PageContent, figures_of, page
from rsp_engine.experiments.report.plots import write_figures
from rsp_engine.experiments.report.svg import draw
from rsp_engine.experiments.report.written import found_results, report_progress, write_report
from rsp_engine.experiments.results import read_result_folder, run_suite
from rsp_engine.experiments.suite import Data, ParameterGrid, Suite
from tests.data import real_data
from tests.experiments.grids import by_budget, made_grid

POLICIES = ("WST", "WSJ-LRU", "WSJ-WBM", "AT-TSM", "AT-BSM", "AT-ASM")
GRIDS = (
    ParameterGrid("one point", POLICIES, (20,), (7,), (5,), (10,)),
    ParameterGrid("text", POLICIES, (20,), (1, 7), (5,), (10,)),
)
VOID = {"meta", "br", "line", "rect", "circle", "polyline", "polygon", "path"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder of a small suite that was run."""
    root = tmp_path_factory.mktemp("results")
    data = Data(datasets=3, windows=8)
    run_suite(Suite("experiment-1", "One <b>", "budget", data, GRIDS), root, in_turn)
    return root


class Checked(HTMLParser):
    """Sees to it that what is opened is closed, and remembers what points elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(text):
    checked = Checked()
    checked.feed(text)
    assert checked.open == []
    return checked


def test_the_rows_of_a_folder_are_summed_as_they_stand(results):
    path = results / "experiment-1"
    _, grid = measured(read_result_folder(path))
    point = Point(20, 7, 5, 10)
    sums = []
    for number in (1, 2, 3):
        rows = (path / "rows" / f"text.ch20.{number}.AT-TSM.csv").read_text().splitlines()
        cells = [row.split(",") for row in rows[1:]]
        sums.append(sum(float(c[11]) for c in cells if c[3] == "7"))
    assert grid.sums("AT-TSM", point, "precision").tolist() == pytest.approx(sums)
    median = grid.median("AT-TSM", point, "precision")
    assert median == pytest.approx((np.median(sums), min(sums), max(sums)))
    assert grid.fetched("AT-TSM", point) == 7
    assert grid.windows == 8
    errors = grid.errors("AT-ASM", point, "precision")
    assert len(errors) == 8
    assert (np.diff(errors) >= 0).all()


def test_a_report_is_one_whole_file_that_needs_no_network(results):
    text = page(report_progress(found_results(results, ()), None))
    checked = parsed(text)
    assert {link[1:] for link in checked.links} <= set(checked.ids)
    assert all(link.startswith("#") for link in checked.links)
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in text
    assert "@import" not in text
    assert "<script" not in text
    assert 'name="viewport"' in text
    assert "@media print" in text


def test_a_report_says_what_was_measured(results):
    told = report_progress(found_results(results, ()), None)
    text = page(told)
    _, grid = told.grids
    value = grid.median("AT-BSM", Point(20, 1, 5, 10), "ndcg").value
    assert re.search(rf"<td>AT-BSM</td><td>{value:.1f}</td>", text)
    assert "One &lt;b&gt;" in text
    assert "<b>DS-CH-20</b>, paper</td><td>702</td><td>20.45</td>" in text
    for name in ("Figure 9.", "Figure 10.", "Figure 12.", "Table 6", "11.68"):
        assert name in text
    assert "The authors' run, replayed" not in text
    outcomes = re.findall(r'<div class="badge ([a-z-]+)">', text)
    cards = dict(re.findall(r'<div class="card ([a-z-]+)"><b>(\d+)</b>', text))
    assert {name: int(n) for name, n in cards.items()} == {
        name: outcomes.count(name) for name in ("confirmed", "in-part", "differs")
    }


def test_the_same_results_give_the_same_report(results):
    folders = found_results(results, ())
    assert page(report_progress(folders, None)) == page(report_progress(folders, None))


def test_a_report_tells_that_mentions_can_be_counted_otherwise():
    values = {"AT-TSM": [90.0, 90.0], "WST": [10.0, 10.0]}
    mine = made_grid(by_budget(5, 7), values)
    assert "The suite <code>every-mention</code> shows the other way" in page(
        PageContent([mine], {})
    )
    other = made_grid(by_budget(5, 7), values, suite="mine", counting="mentions")
    text = page(PageContent([mine, other], {}))
    assert re.search(r"With every mention counted, 3 of 3 verdicts are “confirmed”", text)


def test_a_report_on_what_cannot_tell_says_so():
    grid = made_grid(by_budget(7), {"WSJ-LRU": [50.0]}, suite="mine")
    text = page(PageContent([grid], {}))
    parsed(text)
    assert "Nothing that was run can tell" in text


def test_the_replay_stands_in_the_report_where_the_data_are(results):
    told = report_progress(found_results(results, ()), real_data("acquatop"))
    text = page(told)
    parsed(text)
    assert "The authors' run, replayed" in text
    [row] = re.findall(r"<td>WST</td><td>7</td>(.*?)</tr>", text)
    assert "91.3" in row
    assert "110.6" in row


def test_results_are_found_by_name_and_other_folders_are_left(results, tmp_path):
    (results / "figures").mkdir(exist_ok=True)
    assert [path.name for path in found_results(results, ())] == ["experiment-1"]
    assert found_results(results, ["a", "b"]) == [results / "a", results / "b"]
    with pytest.raises(StateError, match="holds no results"):
        found_results(tmp_path, ())


LABELS = Labels("(a) <title>", "x & y", "y")
LINE = (Median(90.0, 80.0, 95.0), Median(100.0, 100.0, 100.0))
PANELS = [
    Lines(LABELS, ("1", "7"), {"AT-TSM": LINE, "my own": LINE, "WST": LINE}, 100),
    Lines(LABELS, ("7",), {"AT-TSM": LINE[:1]}, 100),
    Lines(LABELS, ("7",), {"AT-TSM": (Median(100, 100, 100),)}, 100),
    Curves(LABELS, {"AT-TSM": (0.0, 0.5, 1.5), "WST": (1.0, 2.0, 3.0)}),
    Curves(LABELS, {"AT-TSM": (0.0,)}),
    Bars(LABELS, 3, {"": (1.0, 0.0, 7.0)}),
    Bars(LABELS, 0, {"": (0.0,)}),
]


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_is_drawn_within_its_frame(panel):
    root = ElementTree.fromstring(draw(panel))  # noqa: S314 - what was drawn here
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for node in root.iter():
        for name, most in (("x", width), ("y", height), ("cx", width), ("cy", height)):
            assert 0 <= float(node.attrib.get(name, 0)) <= most
        for pair in node.attrib.get("points", "").split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_a_line_is_drawn_where_its_medians_are():
    """Twice as far below the top is twice as far down the page."""
    line = tuple(Median(v, v, v) for v in (100.0, 90.0, 80.0))
    root = ElementTree.fromstring(draw(Lines(LABELS, ("1", "2", "3"), {"WST": line}, 100)))  # noqa: S314
    [points] = [n.attrib["points"] for n in root.iter() if n.tag.endswith("polyline")]
    first, second, third = (float(pair.split(",")[1]) for pair in points.split())
    assert third - first == pytest.approx(2 * (second - first), abs=0.2)
    assert second > first


def test_a_figure_has_a_pair_of_panels_for_each_budget():
    points = [Point(10, budget, k, 10) for budget in (7, 15) for k in (5, 10)]
    figure = varied_figure(made_grid(points, {"WST": [1.0, 2.0, 3.0, 4.0]}, "k"), "Figure 14")
    assert [panel.labels.title for panel in figure.panels] == [
        "(a) nDCG@k, B 7",
        "(b) precision@k, B 7",
        "(c) nDCG@k, B 15",
        "(d) precision@k, B 15",
    ]
    third = figure.panels[2]
    assert isinstance(third, Lines)
    assert [m.value for m in third.lines["WST"]] == pytest.approx([3.0, 4.0])
    assert third.ticks == ("5", "10")


def test_figures_are_written_as_files_of_the_same_bytes(results, tmp_path):
    pytest.importorskip("matplotlib", reason="figures as files need the extra plots")
    figures = figures_of(report_progress(found_results(results, ()), None))
    written = [write_figures(figures, tmp_path / name) for name in ("a", "b")]
    names = [path.name for path in written[0]]
    assert len(names) == 2 * len(figures)
    assert "experiment-1.text.svg" in names
    assert "figure-9.generated.png" in names
    for one, other in zip(*written, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert (tmp_path / "a" / "experiment-1.text.png").read_bytes().startswith(b"\x89PNG")
    assert "AT-TSM" in (tmp_path / "a" / "experiment-1.text.svg").read_text()


def test_figures_as_files_name_the_extra_they_need_and_the_report_needs_none(
    results, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = report_progress(found_results(results, ()), None)
    with pytest.raises(RspError, match="the extra `plots`") as found:
        write_report(told, tmp_path / "a.html", tmp_path / "figures")
    assert "pip install 'rsp-engine[plots]'" in (found.value.hint or "")
    assert not (tmp_path / "a.html").exists()
    write_report(told, tmp_path / "deep" / "b.html")
    parsed((tmp_path / "deep" / "b.html").read_text(encoding="utf-8"))


def test_a_report_that_cannot_be_written_is_refused(results, tmp_path):
    with pytest.raises(SinkError, match="cannot be written"):
        write_report(report_progress(found_results(results, ()), None), tmp_path)
