"""The ids of answers: they follow from query and window, also after a restart."""

from __future__ import annotations

import json

from rsp_engine.engine import Engine
from rsp_engine.io.sinks.delivery.message_sink import DeliveryIds
from tests.io.sinks.samples import EX, RANKED, answer

COUNTED = f"""PREFIX : <{EX}>
REGISTER RSTREAM :all AS SELECT ?s ?v FROM NAMED WINDOW :w ON :s [ELEMENTS 2 STEP 2]
WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"""


def test_windows_that_count_elements_may_share_their_edges_and_have_ids_of_their_own():
    engine = Engine()
    engine.register(COUNTED)
    engine.bind(f"{EX}s", [(5, f"<{EX}a> <{EX}p> {number} .") for number in range(6)])
    ids = DeliveryIds()
    found = [ids.next(each).removeprefix("http%3A%2F%2Fexample.org%2Fall") for each in engine.run()]
    assert found == ["/5/5", "/5/5/2", "/5/5/3"]


def test_ids_go_on_after_a_restart_where_they_were():
    ids = DeliveryIds()
    queries = [answer(RANKED, close, query) for close in (5000, 6000) for query in ("a", "b")]
    before = [ids.next(each) for each in (*queries, queries[-1])]
    assert before == ["a/0/5000", "b/0/5000", "a/1000/6000", "b/1000/6000", "b/1000/6000/2"]
    again = DeliveryIds()
    again.restore(json.loads(json.dumps(ids.state())))
    for each in (ids, again):
        assert [each.next(queries[-1]), each.next(queries[-2])] == [
            "b/1000/6000/3",
            "a/1000/6000/2",
        ]


def test_no_two_queries_share_an_id():
    ids = DeliveryIds()
    names = ["q", "q/0/5000", "q%2F0%2F5000", "q" * 1000, "q" * 1001, "q/0", "é", "\udcff"]
    found = [ids.next(answer(RANKED, 5000, name)) for name in names]
    assert len(set(found)) == len(names)
    assert all(each.isascii() and len(each) < 250 for each in found)
