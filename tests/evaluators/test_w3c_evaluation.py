"""Every query evaluation test of the W3C's SPARQL 1.1 suite, through a window of the engine.

`windowed` tells how a test becomes a continuous query. Literals are compared by value, since the
engine keeps them so (docs/reference/semantics.md). A test passes or is listed here with its
reason; one that is listed must fail, and Oxigraph must answer it alike without the engine.
"""

from __future__ import annotations

import pytest

from tests.data import real_data
from tests.evaluators.w3c import FOLDER, Case, cases
from tests.evaluators.windowed import WAYS, answers_of, form

CASES = {case.name: case for case in cases()}

OXIGRAPH_ANSWERS_OTHERWISE = {
    "functions/bnode01": "BNODE of a text gives one blank node for all solutions, not one for each",
}

pytestmark = pytest.mark.outside  # some ask a server to ask another

ON_SPARK = list(CASES.values())[::5]


def listed(case: Case) -> list[pytest.MarkDecorator]:
    reason = OXIGRAPH_ANSWERS_OTHERWISE.get(case.name)
    return [] if reason is None else [pytest.mark.xfail(reason=reason, raises=AssertionError)]


@pytest.mark.parametrize(
    ("case", "way"),
    [
        pytest.param(case, way, id=f"{name}-{way}", marks=listed(case))
        for name, case in CASES.items()
        for way in WAYS
        if way != "instead" or (case.graphs and case.question.graphs)
    ],
)
def test_a_window_answers_what_the_w3c_expects(case, way):
    found = answers_of([case.question], way)[case.name]
    assert form(case.question, found) == form(case.question, case.expected)


@pytest.mark.parametrize("name", sorted(OXIGRAPH_ANSWERS_OTHERWISE.keys() & CASES.keys()))
def test_a_listed_test_is_answered_by_oxigraph_in_the_same_way(name):
    case = CASES[name]
    found = answers_of([case.question], "around")[name]
    assert form(case.question, found) == form(case.question, case.by_oxigraph)


def test_every_test_of_the_suite_is_read():
    real_data(FOLDER)
    assert len(CASES) == 199
    assert set(OXIGRAPH_ANSWERS_OTHERWISE) <= set(CASES)


@pytest.mark.usefixtures("spark")
@pytest.mark.skipif(not CASES, reason=f"the data folder {FOLDER} is not there")
def test_forty_of_them_have_the_same_answers_on_spark():
    assert len(ON_SPARK) == 40
    found = answers_of([case.question for case in ON_SPARK], "around", "spark")
    for case in ON_SPARK:
        expected = form(case.question, case.expected)
        assert form(case.question, found[case.name]) == expected, case.name
