"""Equal queries: which are, and that one is evaluated for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyoxigraph import Store

from rsp_engine.drivers.splits.shared_matching import shared_matching
from rsp_engine.engine import Engine
from rsp_engine.monitor.run_monitor import RunMonitor
from rsp_engine.plan.explain.text import explain_all_json
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint

if TYPE_CHECKING:
    from rsp_engine.replica.pattern import RemotePattern

EX = "http://example.org/"
QUERY = (
    f"PREFIX : <{EX}> REGISTER RSTREAM :one AS SELECT ?s ?v"
    " FROM NAMED WINDOW :w ON :s [RANGE 6ms STEP 3ms] WHERE { WINDOW :w { ?s :p ?v } }"
    " ORDER BY DESC(?v) LIMIT 2"
)


def service_query(name: str) -> str:
    return (
        f"PREFIX : <{EX}> REGISTER RSTREAM :{name} AS SELECT ?s ?v"
        " FROM NAMED WINDOW :w ON :s [RANGE 6ms STEP 3ms]"
        f" WHERE {{ WINDOW :w {{ ?s :p ?x }} SERVICE <{EX}remote> {{ ?s :v ?v }} }}"
        " ORDER BY DESC(?v) LIMIT 2"
    )


def test_equal_queries_send_one_query_s_requests() -> None:
    remote = Store()
    remote.update(f"INSERT DATA {{ <{EX}a> <{EX}v> 1 . <{EX}b> <{EX}v> 2 }}")
    opened: list[RemotePattern] = []

    def connect(pattern: RemotePattern) -> InProcessEndpoint:
        opened.append(pattern)
        return InProcessEndpoint(pattern, remote)

    engine = Engine()
    engine.service(f"{EX}remote", connect)
    monitor = RunMonitor()
    engine.watched_by(monitor)
    for name in ("one", "two", "three"):
        engine.register(service_query(name))
    engine.bind(
        f"{EX}s", [(t, f"<{EX}{s}> <{EX}p> 1 .") for t, s in ((1, "a"), (2, "b"), (9, "a"))]
    )
    names = [answer.query.removeprefix(EX) for answer in engine.run()]
    assert names[:3] == ["one", "two", "three"]
    assert len(names) == 3 * names.count("one") == engine.counts.answers
    assert len(opened) == 1
    assert monitor.queries[f"{EX}three"].windows == names.count("one")
    assert set(monitor.watermarks()) == {f"{EX}{name}" for name in ("one", "two", "three")}


@pytest.mark.parametrize(
    ("change", "is_equal"),
    [
        (("DESC(?v)", "DESC( ?v )"), True),
        (("LIMIT 2", "LIMIT 3"), False),
        (("STEP 3ms", "STEP 2ms"), False),
        (("RSTREAM", "ISTREAM"), False),
        ((":p ?v", ":q ?v"), False),
        (("DESC", "ASC"), False),
    ],
)
def test_explain_names_the_query_that_is_evaluated(
    change: tuple[str, str],
    is_equal: bool,
) -> None:
    engine = Engine()
    engine.register(QUERY)
    engine.register(QUERY.replace(":one", ":two").replace(*change))
    shared = f"equal to {EX}one, which is evaluated for both"
    assert (shared in engine.explain()) is is_equal


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        (("LIMIT 2", "LIMIT 7"), ["matching", "panes"]),
        (("LIMIT 2", "LIMIT 2 OFFSET 1"), ["matching", "panes"]),
        (("RANGE 6ms", "RANGE 12ms"), ["matching", "panes"]),
        (("RANGE 6ms", "RANGE 7ms"), ["matching"]),
        (("STEP 3ms", "STEP 2ms"), ["matching"]),
        ((":p ?v", ":q ?v"), []),
        (("DESC", "ASC"), []),
        ((":two", ":two"), []),
    ],
)
def test_explain_says_what_queries_share_where_streams_are_read(
    change: tuple[str, str], shared: list[str]
) -> None:
    engine = Engine()
    engine.register(QUERY)
    engine.register(QUERY.replace(":one", ":two").replace(*change))
    text = engine.explain()
    for name, other in (("one", "two"), ("two", "one")):
        part = text.split(f"query {EX}{name}\n")[1].split("query ")[0]
        said = (
            f"the matching of stream <{EX}s> with {EX}{other}",
            f"the panes of stream <{EX}s> with {EX}{other}",
        )
        assert [word in part for word in said] == ["matching" in shared, "panes" in shared]


def test_queries_that_are_evaluated_pane_by_pane_share_the_panes_alone() -> None:
    plain = QUERY.replace(" ORDER BY DESC(?v) LIMIT 2", "")
    engine = Engine()
    engine.register(plain)
    engine.register(plain.replace(":one", ":two").replace("?s :p ?v", "?s :p ?v FILTER(?v > 2)"))
    engine.register(plain.replace(":one", ":three").replace("STEP 3ms", "STEP 2ms"))
    text = engine.explain()
    assert f"shares   the panes of stream <{EX}s> with {EX}two\n" in text
    assert f"shares   the panes of stream <{EX}s> with {EX}one\n" in text
    assert text.count("shares") == 2


def test_a_plan_in_json_says_what_it_shares() -> None:
    engine = Engine()
    plans = [
        engine.register(QUERY),
        engine.register(QUERY.replace(":one", ":two").replace("LIMIT 2", "LIMIT 5")),
    ]
    matching = shared_matching([each.physical for each in plans])
    [first, _] = explain_all_json(engine._plans, matching=matching)
    expected = {"stream": f"{EX}s", "matching": [f"{EX}two"], "panes": [f"{EX}two"]}
    assert first["shares"] == [expected]
