"""The metrics of a run, as a table; and a port on this computer where Prometheus reads them.

Nothing is counted for it: whoever asks reads what the run knows at that moment. Names and labels
hold no data of streams, and no secrets.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, NamedTuple, cast

from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import Metric

    from rsp_engine.monitor.histogram import Histogram
    from rsp_engine.monitor.run_monitor import QuerySeen, RunMonitor

__all__ = ["COUNTERS", "GAUGES", "HISTOGRAMS", "Counted", "families", "served"]

Counted = dict[tuple[str, ...], float]
"""Values by their labels."""


class Number(NamedTuple):
    """A metric of one number for each set of labels."""

    help: str
    labels: tuple[str, ...]
    read: Callable[[RunMonitor], Counted]


class Spread(NamedTuple):
    """A histogram for each query."""

    help: str
    read: Callable[[QuerySeen], Histogram]


def _alone(read: Callable[[RunMonitor], float]) -> Callable[[RunMonitor], Counted]:
    return lambda watch: {(): read(watch)}


def _each(read: Callable[[QuerySeen], float]) -> Callable[[RunMonitor], Counted]:
    return lambda watch: {(name,): read(seen) for name, seen in watch.queries.items()}


def _dead(watch: RunMonitor) -> Counted:
    return {(kind,): number for kind, number in watch.dead.items()}


def _faults(watch: RunMonitor) -> Counted:
    return {
        (name, cause): number
        for name, seen in watch.queries.items()
        for cause, number in seen.faults.copy().items()
    }


def _refreshed(watch: RunMonitor) -> Counted:
    return {
        (*where, outcome): number
        for where, outcomes in watch.refreshed().items()
        for outcome, number in outcomes.items()
    }


def _watermarks(watch: RunMonitor) -> Counted:
    marks = watch.watermarks().items()
    return {(name,): mark / 1000 for name, mark in marks if abs(mark) < inf}


def _input(place: int) -> Callable[[RunMonitor], Counted]:
    def read(watch: RunMonitor) -> Counted:
        extent = watch.extent()
        return {} if extent is None else {(extent.unit,): cast("int", extent[place])}

    return read


COUNTERS = {
    "rsp_elements": Number("Elements read.", (), _alone(lambda w: w.elements)),
    "rsp_triples": Number("Triples read.", (), _alone(lambda w: w.triples)),
    "rsp_between_windows": Number(
        "Elements that fell between two windows.", (), _alone(lambda w: w.between_windows)
    ),
    "rsp_late_elements": Number(
        "Elements whose windows had all closed.", (), _alone(lambda w: w.late)
    ),
    "rsp_dead_letters": Number("Input set aside, late elements too.", ("reason",), _dead),
    "rsp_windows": Number("Windows answered.", ("query",), _each(lambda q: q.windows)),
    "rsp_exact_windows": Number(
        "Windows answered as asking for everything would.", ("query",), _each(lambda q: q.exact)
    ),
    "rsp_rows": Number("Rows of answers.", ("query",), _each(lambda q: q.rows)),
    "rsp_budget_spent": Number(
        "Remote keys that were to be fetched.", ("query",), _each(lambda q: q.budget_spent)
    ),
    "rsp_requests": Number("Requests to services.", ("query",), _each(lambda q: q.requests)),
    "rsp_refreshed_keys": Number(
        "Remote keys fetched, by what came of it: changed, unchanged or failed.",
        ("query", "service", "outcome"),
        _refreshed,
    ),
    "rsp_cold_misses": Number(
        "Keys of windows that the replica did not know.", ("query",), _each(lambda q: q.cold_misses)
    ),
    "rsp_stale_keys": Number(
        "Keys of windows past their best-before time.", ("query",), _each(lambda q: q.stale)
    ),
    "rsp_faults": Number("What failed at services, by cause.", ("query", "cause"), _faults),
}
GAUGES = {
    "rsp_watermark_seconds": Number(
        "How far event time has come, since 1970.", ("query",), _watermarks
    ),
    "rsp_input_read": Number("How much of a finite input was read.", ("unit",), _input(0)),
    "rsp_input_size": Number("How large a finite input is.", ("unit",), _input(1)),
}
HISTOGRAMS = {
    "rsp_evaluation_seconds": Spread(
        "How long the evaluation of a window took, fetching included.", lambda q: q.evaluation
    ),
    "rsp_remote_age_seconds": Spread(
        "How old remote values in answers were, in event time.", lambda q: q.ages
    ),
}


def families(watch: RunMonitor, hide: Callable[[str], str]) -> Iterator[Metric]:
    """Yield all metrics as they are now; labels go through what hides secrets."""
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    def hidden(labels: Iterable[str]) -> list[str]:
        return [hide(label) for label in labels]

    for name, number in COUNTERS.items():
        counter = CounterMetricFamily(name, number.help, labels=number.labels)
        for labels, value in number.read(watch).items():
            counter.add_metric(hidden(labels), value)
        yield counter
    for name, number in GAUGES.items():
        gauge = GaugeMetricFamily(name, number.help, labels=number.labels)
        for labels, value in number.read(watch).items():
            gauge.add_metric(hidden(labels), value)
        yield gauge
    for name, spread in HISTOGRAMS.items():
        found = HistogramMetricFamily(name, spread.help, labels=["query"])
        for query, seen in watch.queries.items():
            values = spread.read(seen)
            buckets = [(str(float(bound)), float(count)) for bound, count in values.at_most()]
            buckets.append(("+Inf", float(values.count)))
            found.add_metric(hidden([query]), buckets=buckets, sum_value=values.total)
        yield found


class _Collector:
    """What the client asks for the metrics."""

    def __init__(self, watch: RunMonitor, hide: Callable[[str], str]) -> None:
        self._watch, self._hide = watch, hide

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics as they are now."""
        return families(self._watch, self._hide)


@contextmanager
def served(port: int, watch: RunMonitor, hide: Callable[[str], str]) -> Iterator[int]:
    """Serve the metrics on a port that only this computer reaches; give the port.

    0 takes any that is free. What is missing or taken is told as a `BindingError`.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError:
        hint = "install it: pip install 'rsp-engine[metrics]'"
        raise BindingError("--metrics-port needs the extra metrics", hint) from None
    registry = CollectorRegistry()
    registry.register(_Collector(watch, hide))
    try:
        server, thread = start_http_server(port, "127.0.0.1", registry)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "take another port; 0 takes any that is free"
        raise BindingError(f"metrics cannot be served on port {port}: {reason}", hint) from None
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
