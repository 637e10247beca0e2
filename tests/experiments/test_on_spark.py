"""The experiment as a query on Spark gives the numbers of the simulation, for every policy."""

from __future__ import annotations

import pytest

from rsp_engine.experiments.datasets.generator import Scale, generate
from rsp_engine.experiments.simulation import SimulationSetting, simulate
from rsp_engine.experiments.suite import NINE
from rsp_engine.experiments.windows import prepare
from tests.experiments.as_query import run_through_engine
from tests.thoroughness import TIMES

SOME = NINE if TIMES > 1 else NINE[::4]
"""A run takes seconds: a usual one of the tests takes a third of the policies."""


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("policy", SOME)
def test_a_run_is_what_the_engine_answers_on_spark(policy, tmp_path):
    dataset = generate(0, 20, 1, Scale(users=400, duration=1_500_000, mentions=725))
    windows = prepare(dataset)
    setting = SimulationSetting(policy, 7, 5, 10, seed=3)
    path = tmp_path / "mentions.nq"
    path.write_text("".join(dataset.nquads()), encoding="utf-8")
    how = {"runner": "spark", "stream": str(path)}
    answered = list(run_through_engine(dataset, windows.score, setting, **how))  # type: ignore[arg-type]
    found = list(simulate(windows, setting))
    assert len(found) > 20
    assert [(a.users, a.fetched) for a in answered] == [(o.answer, o.fetched) for o in found]
    assert [a.ndcg for a in answered] == [round(o.ndcg, 6) for o in found]
    assert [a.precision for a in answered] == [round(o.precision, 6) for o in found]
