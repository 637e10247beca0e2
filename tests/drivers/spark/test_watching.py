"""A run on Spark is watched like any other."""

from __future__ import annotations

from math import inf

from rsp_engine import Engine
from rsp_engine.monitor.run_monitor import RunMonitor

QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :q AS SELECT ?a ?t FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?a :p ?t } } ORDER BY DESC(?t) LIMIT 2
"""
TEXT = "".join(
    f'<http://example.org/{n}> <http://example.org/p> "{n}" <http://example.org/at/{n}> .\n'
    for n in range(1_000, 41_000, 500)
)


def test_counts_watermark_and_extent_come_from_the_executors(spark, tmp_path):
    path = tmp_path / "s.nq"
    path.write_text(TEXT)
    engine, watch = Engine(runner="spark", master="local[2]", split_bytes=600), RunMonitor()
    engine.watched_by(watch)
    engine.register(QUERY)
    engine.bind("http://example.org/s", str(path))
    seen: list[tuple[float, float]] = []
    for _ in engine.run():
        extent = watch.extent()
        assert extent is not None
        seen.append((watch.watermarks()["http://example.org/q"], extent.done / extent.whole))
    assert seen == sorted(seen)
    assert 0 < seen[0][1] <= seen[-1][1] == 1
    assert (watch.elements, watch.triples, watch.late) == (80, 80, 0)
    assert watch.watermarks() == {"http://example.org/q": inf}
    found = watch.queries["http://example.org/q"]
    assert (found.windows, found.rows, found.evaluation.count) == (5, 9, 5)
    assert not watch.is_stopping
    engine.stop()
    assert watch.is_stopping
