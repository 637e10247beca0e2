"""The benchmarks: `make bench` ends where programs that it can do without are missing."""

from __future__ import annotations

import runpy
import shutil

from tests.data import PROJECT


def test_without_a_broker_the_live_benchmark_leaves_mqtt_out(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    main = runpy.run_path(str(PROJECT / "benchmarks" / "bench_live.py"))["main"]
    monkeypatch.setitem(main.__globals__, "QUADS", 100)
    main()
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("left out: MQTT, since mosquitto is not installed")
    assert rest, "what needs no broker is measured"
