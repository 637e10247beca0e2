"""The choice of a top-k operator for a ranked query, by the planner and by --operator."""

from __future__ import annotations

import pytest

from rsp_engine.evaluators.topk import TopkConfig
from rsp_engine.grammar import check
from rsp_engine.operators.topk.rankers import RANKERS
from rsp_engine.options import OPERATORS, RankingOptions
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from rsp_engine.plan.shapes.topk import chosen_ranker, threshold

QUERY = """PREFIX : <http://example.org/>
SELECT ?s ?v FROM NAMED WINDOW :w ON STREAM :x [RANGE {} STEP {}]
WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT {}"""

OTHERS = ("auto", "general", "eaa", "sla", "approximate")  # the last three are for several streams


def planned(size: str, step: str, k: int = 10, operator: str = "auto") -> tuple[TopkConfig, str]:
    text = QUERY.format(size, step, k)
    ranking = RankingOptions(operator=operator)  # type: ignore[arg-type]
    physical = plan(check(text), text, "query", QueryOptions(ranking=ranking)).physical
    assert isinstance(physical.operator, TopkConfig)
    return physical.operator, physical.why


def config_of(text: str) -> TopkConfig:
    config = plan(check(text), text, "query").physical.operator
    assert isinstance(config, TopkConfig)
    return config


def test_few_slides_a_window_are_for_mintopk_and_many_for_sap():
    few, why_few = planned("1h", "6m")
    many, why_many = planned("1h", "1s")
    assert (few.ranker, few.slides) == ("MinTopk", 10)
    assert (many.ranker, many.slides) == ("SAP", 3600)
    assert "a window has 10 slides (n / s), and k is 10" in why_few
    assert why_few.endswith("below 100 slides, MinTopk is ahead of SAP")
    assert why_many.endswith("from 100 slides on, SAP is ahead of MinTopk")


def test_a_larger_k_wants_more_slides():
    assert planned("1h", "1s", k=720)[0].ranker == "SAP"
    assert planned("1h", "1s", k=721)[0].ranker == "MinTopk"
    assert threshold(721) == 3605


def test_a_tumbling_window_is_one_slide():
    assert chosen_ranker(1, 3).why.startswith("a window has 1 slide (n / s)")
    assert planned("1h", "2h")[0].slides == 1


@pytest.mark.parametrize("unit", ["ELEMENTS", "ROWS", "TRIPLES"])
def test_the_choice_for_a_count_window_is_by_its_slides_too(unit):
    text = QUERY.replace("RANGE", unit)
    configs = [config_of(text.format(size, 10, 10)) for size in (990, 1000)]
    assert [(each.ranker, each.slides) for each in configs] == [("MinTopk", 99), ("SAP", 100)]
    assert config_of(text.replace(" STEP {}", "").format(50, 3)).slides == 1


def test_every_operator_can_be_chosen_by_name():
    rankers = {planned("1h", "1m", operator=o)[0].ranker for o in OPERATORS if o not in OTHERS}
    assert rankers == set(RANKERS)


@pytest.mark.parametrize("operator", ["sap", "sma", "skyband"])
def test_an_operator_that_the_user_chooses_has_no_reason_for_the_choice(operator):
    assert "slides" not in planned("1h", "1s", operator=operator)[1]
