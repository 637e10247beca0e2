"""The change signal: stamps of keys are compared with those of their last fetch."""

from __future__ import annotations

import json

import numpy as np
import pyoxigraph as ox
import pytest

from rsp_engine.drivers.bindings import connect
from rsp_engine.errors import BindingError, ServiceError
from rsp_engine.replica.change_signal import ChangeSignal, ModifiedPattern, modified_pattern
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, FetchResult, Limits
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint
from rsp_engine.replica.pattern import RemotePattern
from rsp_engine.replica.store.keys import Keys
from rsp_engine.replica.store.replica import Replica, ReplicaConfig

EX = "http://example.org/"
MODIFIED = "http://purl.org/dc/terms/modified"
PATTERN = RemotePattern(f"{EX}s", f"{{ ?k <{EX}p> ?v }}", ("k",), ("v",))
ANN, BOB, CAT = keys = [(ox.NamedNode(EX + name),) for name in ("ann", "bob", "cat")]


def stamped(store: ox.Store, **stamps: int) -> None:
    """Set the stamps of keys."""
    verb = ox.NamedNode(MODIFIED)
    for name, stamp in stamps.items():
        subject = ox.NamedNode(EX + name)
        for quad in list(store.quads_for_pattern(subject, verb, None)):
            store.remove(quad)
        store.add(ox.Quad(subject, verb, ox.Literal(stamp)))


def signal_of(store: ox.Store) -> tuple[ChangeSignal, Keys]:
    known = Keys(keys)
    return ChangeSignal(InProcessEndpoint(modified_pattern(PATTERN, MODIFIED), store), known), known


def ask(signal: ChangeSignal, *numbers: int) -> tuple[list[bool], list[bool]]:
    reply = signal.ask(np.array(numbers, dtype=np.int64), UNLIMITED, 0)
    return reply.is_covered.tolist(), reply.unchanged.tolist()


def test_a_key_has_changed_if_its_stamp_differs_from_that_of_its_last_fetch():
    store = ox.Store()
    stamped(store, ann=1, bob=1)
    signal, _ = signal_of(store)
    assert ask(signal, 0, 1, 2) == ([False] * 3, [False] * 3)  # nothing was fetched yet
    signal.record_fetched([0, 1, 2])
    assert ask(signal, 0, 1, 2) == ([True, True, False], [True, True, False])  # cat has none
    stamped(store, bob=2, cat=1)
    assert ask(signal, 0, 1, 2) == ([True, True, False], [True, False, False])
    assert ask(signal, 1) == ([True], [False])  # until it is fetched
    signal.record_fetched([1])
    assert ask(signal, 1) == ([True], [True])


def test_a_snapshot_is_loaded_with_the_stamps_received_before_it():
    store = ox.Store()
    stamped(store, ann=1, bob=1)
    signal, known = signal_of(store)
    stamps_before = signal.snapshot(0)
    stamped(store, bob=2)  # while the values are loaded: it may be the old value or the new one
    signal.load(stamps_before)
    assert ask(signal, 0, 1) == ([True, True], [True, False])
    store.add(ox.Quad(ox.NamedNode(f"{EX}dan"), ox.NamedNode(MODIFIED), ox.Literal(1)))
    signal.load(signal.snapshot(0))
    assert len(known) == 3  # a key without a value needs no stamp


def test_a_key_fetched_without_a_stamp_has_no_signal():
    store = ox.Store()
    stamped(store, ann=1, bob=1)
    signal, _ = signal_of(store)
    ask(signal, 0, 1)
    signal.record_fetched([0, 1])
    ask(signal, 0)
    signal.record_fetched([1])  # its value may be newer than its last stamp
    assert ask(signal, 0, 1) == ([True, False], [True, False])


def test_a_signal_that_fails_covers_no_key():
    store = ox.Store()
    stamped(store, ann=1)
    signal, _ = signal_of(store)
    ask(signal, 0)
    signal.record_fetched([0])
    reply = signal.ask(np.array([0]), Limits(max_requests=0), 0)
    assert not reply.is_covered.any()
    assert not reply.unchanged.any()
    assert sum(reply.faults.values()) == 1


def test_the_stamps_are_plain_data_and_are_restored():
    store = ox.Store()
    stamped(store, ann=1, bob=1)
    signal, _ = signal_of(store)
    ask(signal, 0, 1)
    signal.record_fetched([1, 0])
    again, _ = signal_of(store)
    again.restore(json.loads(json.dumps(signal.state())))
    assert again.state() == signal.state()
    assert ask(again, 0, 1) == ([True, True], [True, True])


def test_a_recorded_history_has_the_time_of_the_last_change_as_stamp():
    one, two = ({"v": ox.Literal(1)},), ({"v": ox.Literal(2)},)
    recorded = RecordedEndpoint({ANN: [(0, one), (50, two)], BOB: [(0, one)]})
    signal = ChangeSignal(recorded.modified(), Keys(keys))
    signal.ask(np.array([0, 1]), UNLIMITED, 10)
    signal.record_fetched([0, 1])
    reply = signal.ask(np.array([0, 1]), UNLIMITED, 60)
    assert reply.changed.tolist() == [True, False]


def test_a_confirmed_key_counts_as_refreshed_and_no_other_key_is_touched():
    replica = Replica(ReplicaConfig(PATTERN))
    replica.apply(FetchResult({key: ({"v": ox.Literal(1)},) for key in (ANN, BOB)}), 10)
    numbers = replica.keys.numbers([ANN, BOB, CAT])
    replica.confirm(numbers[[0, 2]], 30)
    assert replica.entries(numbers[:2]).last_refresh.tolist() == [30, 10]
    assert replica.entries(numbers[:2]).last_change.tolist() == [10, 10]
    assert replica.is_known(numbers).tolist() == [True, True, False]
    replica.confirm(numbers[:1], 20)  # older news is no news
    assert replica.entries(numbers[:1]).last_refresh.tolist() == [30]
    replica.doubt(numbers[1:2], 30)
    assert replica.entries(numbers[:2]).is_stale(30).tolist() == [False, True]


@pytest.mark.parametrize("join", [(), ("k", "l")])
def test_the_signal_needs_one_join_key(join):
    pattern = RemotePattern(f"{EX}s", "{ }", join, ("v",))
    with pytest.raises(BindingError, match=f"the clause has {len(join)} keys"):
        modified_pattern(pattern, MODIFIED)


def test_a_property_that_is_no_iri_is_refused():
    with pytest.raises(BindingError, match="> } # is not an IRI"):
        modified_pattern(PATTERN, "> } #")


def test_a_key_that_is_called_modified_is_no_trouble():
    pattern = RemotePattern(f"{EX}s", f"{{ ?modified <{EX}p> ?v }}", ("modified",), ("v",))
    assert modified_pattern(pattern, MODIFIED).variables == ("modified_",)


def test_an_endpoint_that_cannot_tell_is_refused():
    class Mute:
        def fetch(self, *_):
            return FetchResult()

        snapshot = close = fetch

    opened = connect(Mute())
    assert opened(PATTERN) is not None
    with pytest.raises(ServiceError, match="Mute cannot report changes"):
        opened(modified_pattern(PATTERN, MODIFIED))
    assert isinstance(modified_pattern(PATTERN, MODIFIED), ModifiedPattern)
