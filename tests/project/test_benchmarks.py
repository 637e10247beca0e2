"""The benchmarks: `make bench` ends where programs that it can do without are missing."""

from __future__ import annotations

import runpy
import shutil
import sys

import pytest

from tests.data import PROJECT


@pytest.mark.parametrize(("asked", "size"), [(None, "short"), ("", "short"), ("1", "full")])
def test_benchmarks_are_short_unless_the_full_size_is_asked_for(asked, size, monkeypatch):
    monkeypatch.delenv("RSP_FULL", raising=False)
    if asked is not None:
        monkeypatch.setenv("RSP_FULL", asked)
    sized = runpy.run_path(str(PROJECT / "benchmarks" / "size.py"))["sized"]
    assert sized(short="short", full="full") == size


def test_the_full_size_of_checkpoints_has_a_million_keys(monkeypatch):
    monkeypatch.setenv("RSP_FULL", "1")
    monkeypatch.delitem(sys.modules, "benchmarks.size", raising=False)
    benchmark = runpy.run_path(str(PROJECT / "benchmarks" / "bench_checkpoint.py"))
    assert benchmark["KEYS"] == (10_000, 100_000, 1_000_000)
    monkeypatch.delitem(sys.modules, "benchmarks.size")


def test_without_stocks_sap_says_what_it_leaves_out(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("RSP_DATA", str(tmp_path))
    benchmark = runpy.run_path(str(PROJECT / "benchmarks" / "bench_sap.py"))
    monkeypatch.setitem(benchmark["on_real_data"].__globals__, "flights", lambda: None)
    benchmark["on_real_data"]()
    assert capsys.readouterr().out.split("\n\n")[0].strip().startswith("left out: STOCK, since")


def test_without_a_broker_the_live_benchmark_leaves_mqtt_out(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    main = runpy.run_path(str(PROJECT / "benchmarks" / "bench_live.py"))["main"]
    monkeypatch.setitem(main.__globals__, "QUADS", 100)
    main()
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("left out: MQTT, since mosquitto is not installed")
    assert rest, "what needs no broker is measured"
