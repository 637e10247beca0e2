"""Verdicts on the claims of the paper depend on the measures alone."""

from __future__ import annotations

import pytest

from rsp_engine.evaluators.service import refresh
from rsp_engine.evaluators.service.refresh import Refresh
from rsp_engine.experiments.datasets.generator import generate
from rsp_engine.experiments.policy_run import RunSetting, oracle, run_policy
from rsp_engine.experiments.report.claims import CLAIMS, judge_claim, leaders, verdicts
from rsp_engine.experiments.report.improvement import TABLE_6, improvements
from rsp_engine.experiments.report.measured import Point
from rsp_engine.experiments.report.reasons import UNKNOWN, reasons
from rsp_engine.experiments.workload import workload_of
from tests.experiments.grids import by_budget, made_grid

BY_TEXT = {(claim.name, claim.text): claim for claim in CLAIMS}
LEADS = BY_TEXT["Hp.1", "AT-TSM leads in nDCG for B > 3"]
BORDER = BY_TEXT["Hp.1", "AT-BSM leads in precision for every B"]
UPPER = BY_TEXT["Bounds", "AT-ASM is never behind"]
LOWER = BY_TEXT["Bounds", "WST is never ahead"]


def told(claim, grid):
    verdict = judge_claim(claim, grid)
    assert verdict is not None
    return verdict.outcome, verdict.tally


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ([90.0, 90.0, 90.0, 90.0], ("confirmed", "4 of 4")),
        ([79.6, 90.0, 90.0, 90.0], ("confirmed", "4 of 4")),  # behind by less than the margin
        ([79.4, 90.0, 90.0, 90.0], ("in part", "3 of 4")),
        ([70.0, 70.0, 90.0, 90.0], ("in part", "2 of 4")),
        ([70.0, 70.0, 70.0, 90.0], ("differs", "1 of 4")),
        ([70.0, 70.0, 70.0, 70.0], ("differs", "0 of 4")),
    ],
)
def test_a_claim_is_confirmed_at_all_settings_in_part_at_half_and_else_differs(ours, expected):
    values = {"AT-TSM": ours, "WSJ-LRU": [80.0] * 4}
    assert told(LEADS, made_grid(by_budget(5, 7, 10, 15), values)) == expected


def test_a_claim_is_judged_only_at_the_settings_it_is_about():
    """The claim is about B > 3; smaller budgets do not count."""
    grid = made_grid(by_budget(1, 3, 5, 7), {"AT-TSM": [0, 0, 90, 90], "WSJ-LRU": [50.0] * 4})
    assert told(LEADS, grid) == ("confirmed", "2 of 2")


def test_who_keeps_to_no_budget_is_no_rival_but_bounds_the_others():
    points = by_budget(5, 7)
    values = {"AT-TSM": [80.0, 80.0], "AT-ASM": [99.0, 99.0], "WST": [20.0, 20.0]}
    grid = made_grid(points, values)
    assert told(LEADS, grid) == ("confirmed", "2 of 2")
    assert told(UPPER, grid) == ("confirmed", "4 of 4")
    assert told(LOWER, grid) == ("confirmed", "4 of 4")
    beyond = made_grid(points, values | {"AT-TSM": [80.0, 99.9], "WST": [81.0, 20.0]})
    assert told(UPPER, beyond) == ("in part", "2 of 4")
    assert told(LOWER, beyond) == ("in part", "2 of 4")


def test_nothing_is_said_where_a_grid_cannot_tell():
    values = {"AT-TSM": [80.0], "WSJ-LRU": [90.0]}
    one_point = made_grid(by_budget(7), values)
    assert judge_claim(LEADS, one_point) is None
    other = made_grid([Point(10, 7, 5, n) for n in (0, 10)], {"AT-TSM": [1.0, 2.0]}, "n")
    assert judge_claim(LEADS, other) is None
    without = made_grid(by_budget(5, 7), {"WSJ-LRU": [1.0, 2.0]})
    assert judge_claim(LEADS, without) is None
    assert judge_claim(LOWER, without) is None


@pytest.mark.parametrize(
    ("values", "outcome"),
    [([90.0, 93.0, 94.9], "confirmed"), ([90.0, 93.0, 95.1], "differs")],
)
def test_a_line_is_flat_if_it_moves_by_less_than_a_twentieth(values, outcome):
    claim = BY_TEXT["Shapes", "AT-TSM is flat in CH"]
    grid = made_grid([Point(ch, 7, 5, 10) for ch in (5, 20, 80)], {"AT-TSM": values}, "ch")
    assert told(claim, grid)[0] == outcome


def test_wst_is_flat_only_if_it_does_not_move_at_all():
    claim = BY_TEXT["Shapes", "WST is flat in B"]
    assert told(claim, made_grid(by_budget(1, 7), {"WST": [50.0, 50.0]}))[0] == "confirmed"
    assert told(claim, made_grid(by_budget(1, 7), {"WST": [50.0, 50.1]}))[0] == "differs"


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([80.0, 90.0, 95.0], "confirmed"),
        ([80.0, 90.0, 89.8], "confirmed"),  # within the margin
        ([80.0, 90.0, 85.0], "differs"),
        ([80.0, 80.0, 80.0], "differs"),
    ],
)
def test_a_line_rises_if_it_never_falls_and_ends_higher(values, outcome):
    claim = BY_TEXT["Shapes", "AT-ASM rises with N"]
    grid = made_grid([Point(10, 7, 5, n) for n in (0, 10, 20)], {"AT-ASM": values}, "n")
    assert told(claim, grid)[0] == outcome


def test_a_hypothesis_is_about_the_better_of_the_proposed_policies():
    claims = [c for c in CLAIMS if c.name == "Hp.1" and c.section == "6.3"]
    values = {
        "AT-TSM": [90.0, 10.0],
        "AT-BSM": [10.0, 90.0],
        "WSJ-LRU": [80.0, 95.0],
        "WSJ-WBM": [80.0, 80.0],
    }
    for claim in claims:
        assert told(claim, made_grid(by_budget(1, 7), values)) == ("in part", "1 of 2")


def test_table_7_is_about_every_n_though_the_hypothesis_is_not():
    """At N = 0, which the wording of Hp.4 leaves out, the claim of the table still counts."""
    values = {"AT-TSM": [10.0, 90.0], "AT-BSM": [10.0, 90.0], "WSJ-LRU": [50.0, 50.0]}
    values |= {"WSJ-WBM": [50.0, 50.0]}
    grid = made_grid([Point(10, 7, 5, n) for n in (0, 10)], values, "n")
    found = {v.claim.section: v.tally for v in verdicts([grid]) if v.claim.name == "Hp.4"}
    assert found == {"6.3": "1 of 1", "Table 7": "1 of 2"}


def test_leaders_are_those_that_nobody_is_clearly_ahead_of():
    values = {"AT-TSM": [90.0], "AT-BSM": [90.3], "WSJ-LRU": [89.0], "AT-ASM": [99.0]}
    [point] = by_budget(7)
    assert leaders(made_grid([point], values), point, "ndcg") == ["AT-BSM", "AT-TSM"]


def test_an_improvement_is_a_difference_of_medians_in_percent_of_the_windows():
    values = {"AT-TSM": [50.0, 80.0], "WSJ-LRU": [60.0, 65.0]}
    found = improvements(made_grid(by_budget(1, 7), values), "ndcg")
    assert found == {("AT-TSM", "WSJ-LRU"): pytest.approx((15.0, -10.0))}


def test_table_6_is_read_as_it_is_printed():
    """Some cells from the corners and the middle of the printed table."""
    assert TABLE_6[1, ("AT-TSM", "WSJ-WBM"), "ndcg"] == (11.68, -3.58)
    assert TABLE_6[2, ("AT-TSM", "WSJ-LRU"), "precision"] == (11.94, -1.04)
    assert TABLE_6[3, ("AT-BSM", "WSJ-WBM"), "ndcg"] == (11.7, -0.29)
    assert TABLE_6[3, ("AT-TSM", "WSJ-LRU"), "precision"] == (5.06, -23.72)
    assert TABLE_6[4, ("AT-BSM", "WSJ-LRU"), "precision"] == (9.06, -1.87)
    assert len(TABLE_6) == 32


def reason_at(point, rival, fetched=20.0, counting="slides"):
    """Return why AT-BSM does not lead in precision at the second of two points."""
    values = {"AT-BSM": [90.0, 50.0], rival: [10.0, 90.0], "AT-ASM": [99.0, 99.0]}
    grid = made_grid([by_budget(0)[0], point], values, fetched=fetched, counting=counting)
    verdict = judge_claim(BORDER, grid)
    assert verdict is not None
    [(reason, [place])] = reasons(verdict).items()
    return reason, place


def test_a_reason_tells_what_was_found_at_the_place():
    reason, place = reason_at(Point(10, 25, 5, 10), "WSJ-LRU", fetched=20.8)
    assert reason.startswith("The budget is larger than the list")
    assert place == "B 25: AT-BSM 50.0, WSJ-LRU 90.0 (the list: 20.8 objects)"


@pytest.mark.parametrize(
    ("point", "rival", "counting", "begins"),
    [
        (Point(10, 15, 5, 10), "WSJ-LRU", "slides", "From B = 2K on"),
        (Point(10, 8, 10, 10), "WSJ-LRU", "slides", "AT-TSM and AT-BSM fetch keys that rank high"),
        (Point(10, 7, 5, 10), "WSJ-LRU", "mentions", "Every mention is counted here"),
        (Point(10, 7, 5, 10), "AT-TSM", "slides", "The other policy that the paper proposes"),
        (Point(10, 1, 5, 10), "WSJ-LRU", "slides", "Likely: the budget does not reach"),
        (Point(10, 7, 5, 10), "WSJ-RND", "slides", UNKNOWN),
    ],
)
def test_a_reason_is_given_only_where_its_rule_applies(point, rival, counting, begins):
    assert reason_at(point, rival, counting=counting)[0].startswith(begins)


def test_from_a_budget_of_2k_on_bsm_and_tsm_do_the_same():
    """What the report gives as a reason is so."""
    workload = workload_of(generate(0, 10, 1).once_a_slide())
    for budget, are_same in ((9, False), (10, True), (15, True)):
        both = [
            list(run_policy(workload, RunSetting(p, budget, 5, 10))) for p in ("AT-TSM", "AT-BSM")
        ]
        assert (both[0] == both[1]) == are_same


def missed(dataset, setting, monkeypatch):
    """Yield the replica's value and the true value of each user that an answer misses."""
    replicas = []

    class Kept(Refresh):
        def __init__(self, *parts):
            super().__init__(*parts)
            replicas.append(self.replica)

    monkeypatch.setattr(refresh, "Refresh", Kept)
    workload = workload_of(dataset)
    exact = oracle(workload)
    outcomes = run_policy(workload, setting)
    for close, (ranking, _, _), outcome in zip(workload.closes, exact, outcomes, strict=True):
        for user in set(ranking[: setting.k]) - set(outcome.answer):
            key = replicas[-1].keys.number((workload.users[user],))
            [[solution]] = replicas[-1].look([key])
            yield float(solution["dfc"].value), dataset.dfc_at(close)[user]


def test_whom_tsm_misses_for_a_large_k_stands_too_low_by_an_old_value(monkeypatch):
    """What the report gives as a reason is so. LRU misses some whom it knows well, too."""
    dataset = generate(0, 10, 1).once_a_slide()
    mentioned = [dataset.mentioned(*window) for window in dataset.windows]
    assert 5 < sum((mn == 2).sum() for mn in mentioned) / 150 < 7
    by_tsm = list(missed(dataset, RunSetting("AT-TSM", 15, 10, 10), monkeypatch))
    assert len(by_tsm) > 200
    assert all(held < true for held, true in by_tsm)
    by_lru = list(missed(dataset, RunSetting("WSJ-LRU", 15, 10, 10), monkeypatch))
    assert len(by_lru) < len(by_tsm) / 2
    assert not all(held < true for held, true in by_lru)
