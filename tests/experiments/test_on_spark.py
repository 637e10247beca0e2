"""The query of an experiment gives the same answers on Spark."""

from __future__ import annotations

import pytest

from rsp_engine.experiments.datasets.generator import Scale, generate
from rsp_engine.experiments.policy_run import RunSetting, run_policy
from rsp_engine.experiments.workload import workload_of
from tests.experiments.as_query import run_through_engine


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("policy", ["AT-TSM", "WSJ-RND"])
def test_a_run_is_what_the_engine_answers_on_spark(policy, tmp_path):
    dataset = generate(0, 20, 1, Scale(users=400, duration=1_500_000, mentions=725))
    setting = RunSetting(policy, 7, 5, 10, seed=3)
    path = tmp_path / "mentions.nq"
    path.write_text("".join(dataset.nquads()), encoding="utf-8")
    how = {"runner": "spark", "stream": str(path)}
    answered = list(run_through_engine(dataset, setting, **how))  # type: ignore[arg-type]
    found = list(run_policy(workload_of(dataset), setting))
    assert len(found) > 20
    assert [(a.users, a.fetched) for a in answered] == [(o.answer, o.fetched) for o in found]
    assert [a.ndcg for a in answered] == [round(o.ndcg, 6) for o in found]
    assert [a.precision for a in answered] == [round(o.precision, 6) for o in found]
