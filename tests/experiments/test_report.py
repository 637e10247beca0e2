"""The report: one self-contained file with the measures, tables and figures."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from xml.etree import ElementTree

import numpy as np
import pytest

from rsp_engine.errors import RspError, SinkError, StateError
from rsp_engine.experiments import replay
from rsp_engine.experiments.process_pool import in_turn
from rsp_engine.experiments.report.figures import Bars, Curves, Labels, Lines, varied_figure
from rsp_engine.experiments.report.measured import Median, Point, measured
from rsp_engine.experiments.report.page import PageContent, figures_of, page
from rsp_engine.experiments.report.plots import legend_svg, panel_svg, write_figures
from rsp_engine.experiments.report.written import found_results, page_content, write_report
from rsp_engine.experiments.results import read_result_folder, run_suite
from rsp_engine.experiments.suite import Data, ParameterGrid, Suite
from rsp_engine.model.extras import install_command
from rsp_engine.policies.registry import POLICIES as REGISTERED
from tests.data import real_data
from tests.experiments.grids import by_budget, made_grid
from tests.thoroughness import TIMES

POLICIES = ("WST", "WSJ-LRU", "WSJ-WBM", "AT-TSM", "AT-BSM", "AT-ASM")
GRIDS = (
    ParameterGrid("one point", POLICIES, (20,), (7,), (5,), (10,)),
    ParameterGrid("text", POLICIES, (20,), (1, 7), (5,), (10,)),
)
VOID = {"meta", "br"}
SVG = "{http://www.w3.org/2000/svg}"
NEEDS_MATPLOTLIB = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="figures need the extra plots"
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a folder with the results of a small suite."""
    root = tmp_path_factory.mktemp("results")
    data = Data(datasets=3, windows=8)
    run_suite(Suite("experiment-1", "One <b>", "budget", data, GRIDS), root, in_turn)
    return root


class Checked(HTMLParser):
    """Checks that tags are balanced, and collects links and ids."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

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
        sums.append(sum(float(c[13]) for c in cells if c[3] == "7"))
    assert grid.sums("AT-TSM", point, "precision").tolist() == pytest.approx(sums)
    median = grid.median("AT-TSM", point, "precision")
    assert median == pytest.approx((np.median(sums), min(sums), max(sums)))
    assert grid.fetched("AT-TSM", point) == 7
    assert grid.windows == 8
    errors = grid.errors("AT-ASM", point, "precision")
    assert len(errors) == 8
    assert (np.diff(errors) >= 0).all()


def test_a_report_is_one_whole_file_that_needs_no_network(results):
    text = page(page_content(found_results(results, ()), None))
    checked = parsed(text)
    links = checked.links + re.findall(r"url\(([^)]*)\)", text)
    assert all(link.startswith("#") for link in links)
    assert {link[1:] for link in links} <= set(checked.ids)
    assert len(checked.ids) == len(set(checked.ids))
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= namespaces
    assert "@import" not in text
    assert "<script" not in text
    assert 'name="viewport"' in text
    assert "@media print" in text


def test_a_report_says_what_was_measured(results):
    told = page_content(found_results(results, ()), None)
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
    assert page(page_content(folders, None)) == page(page_content(folders, None))


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


def test_the_replay_stands_in_the_report_where_the_data_are(results, monkeypatch):
    """A usual run replays one policy; all of them take a minute."""
    if TIMES == 1:
        monkeypatch.setattr(replay, "POLICIES", {"WST": REGISTERED["WST"]})
    told = page_content(found_results(results, ()), real_data("acquatop"))
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


def drawn(panel):
    return ElementTree.fromstring(panel_svg(panel, "here"))  # noqa: S314 - what was drawn here


def points_of(path):
    """Return the points of an SVG path of straight lines."""
    numbers = [float(word) for word in path.attrib["d"].split() if word not in "MLz"]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def texts_of(root):
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


@NEEDS_MATPLOTLIB
@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_is_drawn_within_its_frame(panel):
    root = drawn(panel)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    markers = {path for defs in root.iter(f"{SVG}defs") for path in defs.iter(f"{SVG}path")}
    paths = [path for path in root.iter(f"{SVG}path") if path not in markers]
    places = [point for path in paths for point in points_of(path)]
    places += [(float(use.attrib["x"]), float(use.attrib["y"])) for use in root.iter(f"{SVG}use")]
    assert len(places) > 10
    for x, y in places:
        assert 0 <= x <= width
        assert 0 <= y <= height


@NEEDS_MATPLOTLIB
@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_names_itself_and_its_axes(panel):
    assert {LABELS.title, LABELS.x, LABELS.y} <= set(texts_of(drawn(panel)))


@NEEDS_MATPLOTLIB
def test_a_line_is_drawn_where_its_medians_are():
    """Twice as far below the top is twice as far down the page."""
    line = tuple(Median(v, v, v) for v in (100.0, 90.0, 80.0))
    root = drawn(Lines(LABELS, ("1", "2", "3"), {"WST": line}, 100))
    [points] = [
        points
        for path in root.iter(f"{SVG}path")
        if "stroke: #222222" in path.attrib.get("style", "") and len(points := points_of(path)) == 3
    ]
    first, second, third = (y for _, y in points)
    assert third - first == pytest.approx(2 * (second - first), abs=0.001)
    assert second > first


@NEEDS_MATPLOTLIB
def test_a_legend_has_the_proposed_policies_first_and_the_bounds_last():
    legend = legend_svg(("WST", "my own", "WSJ-LRU", "AT-TSM"), "here")
    names = texts_of(ElementTree.fromstring(legend))  # noqa: S314 - what was drawn here
    assert names == ["AT-TSM", "WSJ-LRU", "WST", "my own"]
    assert legend_svg((), "here") == ""


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


@NEEDS_MATPLOTLIB
def test_figures_are_written_as_files_of_the_same_bytes(results, tmp_path):
    figures = figures_of(page_content(found_results(results, ()), None))
    written = [write_figures(figures, tmp_path / name) for name in ("a", "b")]
    names = [path.name for path in written[0]]
    assert len(names) == 3 * len(figures)
    assert "experiment-1.text.svg" in names
    assert "figure-9.generated.png" in names
    for one, other in zip(*written, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert (tmp_path / "a" / "experiment-1.text.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a" / "experiment-1.text.pdf").read_bytes().startswith(b"%PDF")
    assert "AT-TSM" in (tmp_path / "a" / "experiment-1.text.svg").read_text()


def test_without_matplotlib_a_report_has_tables_and_names_the_extra_for_figures(
    results, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = page_content(found_results(results, ()), None)
    with pytest.raises(RspError, match="the extra `plots`") as found:
        write_report(told, tmp_path / "a.html", tmp_path / "figures")
    assert install_command("plots") in (found.value.hint or "")
    assert not (tmp_path / "a.html").exists()
    write_report(told, tmp_path / "deep" / "b.html")
    text = (tmp_path / "deep" / "b.html").read_text(encoding="utf-8")
    parsed(text)
    assert "Figures are left out" in text
    assert "<svg" not in text
    assert "Figure 12." in text
    assert "<td>AT-BSM</td>" in text


def test_a_report_that_cannot_be_written_is_refused(results, tmp_path):
    with pytest.raises(SinkError, match="cannot be written"):
        write_report(page_content(found_results(results, ()), None), tmp_path)
