"""The synthetic incomplete streams, and the number of items that operators keep of them."""

from __future__ import annotations

import csv
from collections import deque

import numpy as np
import pytest

from benchmarks.bench_incomplete import (
    PAPER_COUNTS,
    answers,
    dominance_set_size,
    of_the_paper,
    stored_counts,
)
from rsp_engine.experiments.datasets.incomplete import main, observed, write_streams
from rsp_engine.operators.incomplete.observations import IncompleteOperatorConfig
from rsp_engine.operators.incomplete.sla import SLA


def test_a_seed_says_it_all():
    one, same, other = (observed(500, 3, 0.5, seed) for seed in (7, 7, 8))
    assert all((a == b).all() for a, b in zip(one, same, strict=True))
    assert not (one.keys == other.keys).all()


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_a_stream_tells_an_object_once_fresh_or_among_the_last_of_the_others(d, rho):
    found = observed(3000, d, rho, c=20)
    recent: list[deque[int]] = [deque(maxlen=20) for _ in range(d)]
    told: set[tuple[int, int]] = set()
    known: set[int] = set()
    picked = 0
    for stream, key in zip(found.streams.tolist(), found.keys.tolist(), strict=True):
        assert (stream, key) not in told
        if key in known:
            picked += 1
            assert any(key in items for n, items in enumerate(recent) if n != stream)
        told.add((stream, key))
        known.add(key)
        recent[stream].append(key)
    assert picked <= 3000 * (rho + 0.03)
    if rho == 0.3 and d > 1:
        assert picked >= 3000 * 0.27
    assert ((found.values >= 0) & (found.values < 1)).all()
    assert abs(found.values.mean() - 0.5) < 0.03


@pytest.mark.parametrize("size", PAPER_COUNTS)
@pytest.mark.parametrize("rho", [0.2, 0.3, 0.4, 0.5, 0.7, 0.9])
def test_the_approximate_operator_keeps_as_few_as_in_the_paper_and_is_as_precise(size, rho):
    found = stored_counts(size, 2, rho, seeds=(0,))
    assert found.precision >= 0.80
    assert 0 <= found.relative_error <= 0.05
    assert found.approximate <= 1.1 * of_the_paper(size, rho)
    assert found.approximate <= found.eaa + 1


def test_sla_keeps_the_whole_window():
    operator = SLA(IncompleteOperatorConfig(10, (1.0, 1.0)))
    for _ in answers(500, 50, observed(1500, 2, 0.5), [operator]):
        pass
    assert len(operator) == 500


def test_eaa_keeps_more_of_a_larger_window_and_the_approximate_operator_hardly_does():
    small, large = (stored_counts(size, 3, 0.5) for size in (2000, 10_000))
    assert large.eaa <= 0.45 * 10_000
    assert large.eaa > 1.5 * small.eaa
    assert large.approximate < 1.25 * small.approximate
    assert large.precision >= 0.80


def test_a_larger_k_is_answered_no_less_precisely_and_with_less_error():
    few, many = (stored_counts(1000, 3, 0.5, k=k) for k in (5, 50))
    assert many.precision >= few.precision
    assert many.relative_error <= few.relative_error


@pytest.mark.parametrize("interval", [0.0, 0.1, 0.5])
def test_the_dominance_set_has_what_no_later_element_dominates(interval):
    """Lemma 1 of the paper: at least n eps are expected; without intervals, about ln n."""
    draw = np.random.default_rng(1)
    current = draw.random(200)
    best = np.minimum(current + interval, 1.0)
    kept = [i for i in range(200) if not (current[i + 1 :] > best[i]).any()]
    assert dominance_set_size(current, interval) == len(kept)
    assert len(kept) >= 200 * interval * 0.8


def test_streams_are_written_as_tables(tmp_path):
    write_streams(tmp_path, 300)
    names = ["router1", "router2", "router3", "northCamera", "southCamera", "bridgeCamera"]
    texts = {name: (tmp_path / f"{name}.csv").read_text() for name in names}
    tables = {name: list(csv.DictReader(text.splitlines())) for name, text in texts.items()}
    assert sum(len(tables[name]) for name in names[:3]) == 300
    times = [row["timestamp"] for row in tables["router1"]]
    assert times == sorted(times)
    assert {row["id"] for row in tables["router1"]} & {row["id"] for row in tables["router2"]}
    assert "{value}" in (tmp_path / "flows.ttl").read_text()
    assert main(["--write", str(tmp_path / "again"), "--seed", "3"]) == 0
    assert (tmp_path / "again" / "bridgeCamera.csv").is_file()


def test_what_is_no_probability_is_refused():
    with pytest.raises(ValueError, match="rho is a probability"):
        observed(10, 2, 1.5)
    with pytest.raises(ValueError, match="streams"):
        observed(10, 0, 0.5)
    assert len(np.unique(observed(10, 1, 1.0).keys)) == 10  # there is no other stream
