"""The change signal: stamps of keys are compared with those of when they were last taken in."""

from __future__ import annotations

import json

import numpy as np
import pyoxigraph as ox
import pytest

from rsp_engine.drivers.service_binding import connect
from rsp_engine.errors import BindingError, ServiceError
from rsp_engine.replica.change_signal import ChangeSignal, ModifiedPattern, modified_pattern
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, Fetched, Limits
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
    """Let keys have these stamps, and no others."""
    verb = ox.NamedNode(MODIFIED)
    for name, stamp in stamps.items():
        subject = ox.NamedNode(EX + name)
        for quad in list(store.quads_for_pattern(subject, verb, None)):
            store.remove(quad)
        store.add(ox.Quad(subject, verb, ox.Literal(stamp)))


def signal_of(store: ox.Store) -> tuple[ChangeSignal, Keys]:
    known = Keys(keys)
    return ChangeSignal(InProcessEndpoint(modified_pattern(PATTERN, MODIFIED), store), known), known


def asked(signal: ChangeSignal, *numbers: int) -> tuple[list[bool], list[bool]]:
    told = signal.ask(np.array(numbers, dtype=np.int64), UNLIMITED, 0)
    return told.is_told.tolist(), told.unchanged.tolist()


def test_a_key_has_changed_if_its_stamp_is_another_than_when_it_was_taken_in():
    store = ox.Store()
    stamped(store, ann=1, bob=1)
    signal, _ = signal_of(store)
    assert asked(signal, 0, 1, 2) == ([False] * 3, [False] * 3)  # nothing was taken in yet
    signal.took([0, 1, 2])
    assert asked(signal, 0, 1, 2) == ([True, True, False], [True, True, False])  # cat has none
    stamped(store, bob=2, cat=1)
    assert asked(signal, 0, 1, 2) == ([True, True, False], [True, False, False])
    assert asked(signal, 1) == ([True], [False])  # until it is taken in
    signal.took([1])
    assert asked(signal, 1) == ([True], [True])


def test_all_is_loaded_with_the_stamps_that_were_heard_before():
    store = ox.Store()
    stamped(store, ann=1, bob=1)
    signal, known = signal_of(store)
    heard = signal.snapshot(0)
    stamped(store, bob=2)  # while the values are loaded: it may be the old value or the new one
    signal.load(heard)
    assert asked(signal, 0, 1) == ([True, True], [True, False])
    store.add(ox.Quad(ox.NamedNode(f"{EX}dan"), ox.NamedNode(MODIFIED), ox.Literal(1)))
    signal.load(signal.snapshot(0))
    assert len(known) == 3  # of whom nothing is held, no stamp is needed


def test_what_was_not_heard_before_it_was_taken_in_is_not_known():
    store = ox.Store()
    stamped(store, ann=1, bob=1)
    signal, _ = signal_of(store)
    asked(signal, 0, 1)
    signal.took([0, 1])
    asked(signal, 0)
    signal.took([1])  # its value may be newer than the stamp that was heard of it
    assert asked(signal, 0, 1) == ([True, False], [True, False])


def test_a_signal_that_fails_tells_nothing():
    store = ox.Store()
    stamped(store, ann=1)
    signal, _ = signal_of(store)
    asked(signal, 0)
    signal.took([0])
    told = signal.ask(np.array([0]), Limits(max_requests=0), 0)
    assert not told.is_told.any()
    assert not told.unchanged.any()
    assert sum(told.faults.values()) == 1


def test_the_stamps_are_plain_data_and_are_restored():
    store = ox.Store()
    stamped(store, ann=1, bob=1)
    signal, _ = signal_of(store)
    asked(signal, 0, 1)
    signal.took([1, 0])
    again, _ = signal_of(store)
    again.restore(json.loads(json.dumps(signal.state())))
    assert again.state() == signal.state()
    assert asked(again, 0, 1) == ([True, True], [True, True])


def test_a_recorded_history_tells_since_when_a_value_holds():
    one, two = ({"v": ox.Literal(1)},), ({"v": ox.Literal(2)},)
    recorded = RecordedEndpoint({ANN: [(0, one), (50, two)], BOB: [(0, one)]})
    signal = ChangeSignal(recorded.modified(), Keys(keys))
    signal.ask(np.array([0, 1]), UNLIMITED, 10)
    signal.took([0, 1])
    told = signal.ask(np.array([0, 1]), UNLIMITED, 60)
    assert told.changed.tolist() == [True, False]


def test_what_is_confirmed_is_as_good_as_fetched_and_nothing_else_is_touched():
    replica = Replica(ReplicaConfig(PATTERN))
    replica.apply(Fetched({key: ({"v": ox.Literal(1)},) for key in (ANN, BOB)}), 10)
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
    with pytest.raises(BindingError, match="> } # is no IRI"):
        modified_pattern(PATTERN, "> } #")


def test_a_key_that_is_called_modified_is_no_trouble():
    pattern = RemotePattern(f"{EX}s", f"{{ ?modified <{EX}p> ?v }}", ("modified",), ("v",))
    assert modified_pattern(pattern, MODIFIED).variables == ("modified_",)


def test_an_endpoint_that_cannot_tell_is_refused():
    class Mute:
        def fetch(self, *_):
            return Fetched()

        snapshot = close = fetch

    opened = connect(Mute())
    assert opened(PATTERN) is not None
    with pytest.raises(ServiceError, match="Mute cannot tell what has changed"):
        opened(modified_pattern(PATTERN, MODIFIED))
    assert isinstance(modified_pattern(PATTERN, MODIFIED), ModifiedPattern)
