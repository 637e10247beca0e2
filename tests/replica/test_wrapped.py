"""A user's SPARQLWrapper, against a real Oxigraph server and one that fails."""

from __future__ import annotations

import base64
import hashlib
import time
from typing import TYPE_CHECKING

import pytest
from requests.utils import parse_dict_header
from SPARQLWrapper import DIGEST, JSON, POST, POSTDIRECTLY, SPARQLWrapper, SPARQLWrapper2

from rsp_engine.errors import ServiceError
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, FetchResult, Limits
from rsp_engine.replica.endpoints.http import HttpConfig
from rsp_engine.replica.endpoints.sparqlwrapper_endpoint import SparqlWrapperEndpoint
from rsp_engine.replica.store.replica import Replica, ReplicaConfig
from tests.patience import stopwatch
from tests.replica.fault_server import Exchange, FaultServer
from tests.replica.patterns import FOLLOWERS, count, insert, user, users
from tests.replica.servers import OxigraphServer, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

GRAPH = "http://example.org/graph"
ONE = {user(1): (count(1),)}


@pytest.fixture(scope="module")
def oxigraph() -> Iterator[OxigraphServer]:
    with OxigraphServer() as server:
        yield server


@pytest.fixture
def server(oxigraph: OxigraphServer) -> OxigraphServer:
    oxigraph.update("CLEAR ALL")
    return oxigraph


def fetched(wrapper, keys=None, limits=UNLIMITED, **settings):
    config = HttpConfig(allowed=(wrapper.endpoint,), **settings) if settings else None
    endpoint = SparqlWrapperEndpoint(wrapper, FOLLOWERS, config)
    try:
        return endpoint.fetch([user(1)] if keys is None else keys, limits, 0)
    finally:
        endpoint.close()


def test_a_wrapper_is_asked_for_keys_and_for_everything_and_changes_are_seen(server):
    server.update(insert(3))
    endpoint = SparqlWrapperEndpoint(SPARQLWrapper(server.query_url), FOLLOWERS)
    replica = Replica(ReplicaConfig(FOLLOWERS))
    replica.load(endpoint.snapshot(UNLIMITED, 0), 0)
    assert len(replica) == 3
    server.update("DELETE { ?u ?p 2 } INSERT { ?u ?p 7 } WHERE { ?u ?p 2 }")
    found = endpoint.fetch(users(4), UNLIMITED, 1)
    assert (found.requests, found.faults, found.answers[user(3)]) == (1, {}, ())
    changed = replica.apply(found, 1)
    assert replica.keys.of(changed) == [user(2), user(3)]
    assert replica.values(changed) == [(count(7),), ()], "the last one was not known before"
    endpoint.close()


def test_parameters_of_the_wrapper_are_sent(server):
    server.update(insert(2, GRAPH))
    assert fetched(SPARQLWrapper(server.query_url)).answers == {user(1): ()}
    assert fetched(SPARQLWrapper(server.query_url, defaultGraph=GRAPH)).answers == ONE


def test_a_wrapper_that_posts_directly_does_so(server):
    server.update(insert(2, GRAPH))
    wrapper = SPARQLWrapper(server.query_url, defaultGraph=GRAPH)
    wrapper.setRequestMethod(POSTDIRECTLY)
    assert fetched(wrapper).answers == ONE


def test_any_kind_of_configured_wrapper_is_taken_and_left_as_it_was(server):
    server.update(insert(2))
    plain, smart, other = (
        SPARQLWrapper(server.query_url),
        SPARQLWrapper2(server.query_url),
        SPARQLWrapper(server.query_url, returnFormat=JSON),
    )
    other.setMethod(POST)
    other.setQuery("ASK { }")
    for wrapper in (plain, smart, other):
        before = dict(vars(wrapper))
        assert fetched(wrapper).answers == ONE
        assert vars(wrapper) == before


@pytest.fixture
def failing() -> Iterator[FaultServer]:
    with FaultServer() as server:
        server.store.update(insert(8))
        yield server


def test_credentials_headers_and_the_name_of_the_agent_are_sent(failing):
    wrapper = SPARQLWrapper(failing.url, agent="mine")
    wrapper.setCredentials("ann", "s3cret:é")
    wrapper.addCustomHttpHeader("X-Tenant", "7")
    wrapper.addCustomHttpHeader("Accept", "text/html")
    assert fetched(wrapper).answers == ONE
    (headers,) = failing.seen_headers
    pair = base64.b64encode("ann:s3cret:é".encode()).decode()
    assert headers["Authorization"] == f"Basic {pair}"
    assert (headers["X-Tenant"], headers["User-Agent"]) == ("7", "mine")
    assert headers["Accept"].startswith("application/sparql-results+json")


def test_a_header_of_the_user_goes_before_credentials_and_can_be_renewed(failing):
    wrapper = SPARQLWrapper(failing.url)
    wrapper.setCredentials("ann", "secret")
    endpoint = SparqlWrapperEndpoint(wrapper, FOLLOWERS)
    for token in ("old", "new"):
        wrapper.addCustomHttpHeader("authorization", f"Bearer {token}")
        endpoint.fetch([user(1)], UNLIMITED, 0)
    endpoint.close()
    seen = [{n.lower(): v for n, v in h.items()}["authorization"] for h in failing.seen_headers]
    assert seen == ["Bearer old", "Bearer new"]
    assert failing.connections == 1


def digests(exchange: Exchange) -> None:
    """Let in who answers with the digest of `ann` and `secret`; the second nonce is stale soon."""

    def md5(text: str) -> str:
        return hashlib.md5(text.encode()).hexdigest()  # noqa: S324 - the algorithm of digests

    given = parse_dict_header(exchange.headers.get("Authorization", "").partition(" ")[2])
    nonce = f"n{exchange.number > 4}"
    secret, what = md5("ann:here:secret"), md5("POST:/")
    middle = ":".join(str(given.get(n)) for n in ("nonce", "nc", "cnonce", "qop"))
    is_right = given.get("response") == md5(f"{secret}:{middle}:{what}")
    if is_right and given.get("nonce") == nonce:
        exchange.answer()
        return
    stale = ', stale="true"' if is_right else ""
    challenge = f'Digest realm="here", qop="auth", nonce="{nonce}"{stale}'
    exchange.answer(b"no", 401, {"WWW-Authenticate": challenge})


def digesting(url, password="secret"):  # noqa: S107
    wrapper = SPARQLWrapper(url)
    wrapper.setHTTPAuth(DIGEST)
    wrapper.setCredentials("ann", password, realm="here")
    return wrapper


def test_a_digest_costs_the_requests_that_it_takes(failing):
    failing.behave = digests
    endpoint = SparqlWrapperEndpoint(digesting(failing.url), FOLLOWERS)
    costs = [endpoint.fetch([user(1)], UNLIMITED, 0) for _ in range(5)]
    endpoint.close()
    assert all(found.answers == ONE and not found.faults for found in costs)
    # Request 1 is challenged, 2 to 4 are answered, 5 comes with a nonce that is stale.
    assert [found.requests for found in costs] == [2, 1, 1, 2, 1]


def test_a_digest_stays_within_the_requests_that_are_allowed(failing):
    failing.behave = digests
    found = fetched(digesting(failing.url), limits=Limits(max_requests=1))
    assert found == FetchResult({}, 1, {"no requests left": 1})
    assert len(failing.queries) == 1


def test_a_wrong_password_is_a_fault(failing):
    failing.behave = digests
    found = fetched(digesting(failing.url, "wrong"))
    assert found == FetchResult({}, 2, {"status 401": 1})


def test_the_time_of_the_wrapper_is_kept_for_a_whole_answer(failing):
    failing.behave = lambda exchange: exchange.drip(b"HTTP/1.1 200 OK\r\n" + b"X" * 900, 0.05)
    wrapper = SPARQLWrapper(failing.url)
    wrapper.setTimeout(1)
    start = time.monotonic()
    with stopwatch() as passed:
        found = fetched(wrapper)
        assert passed() < 1.2
    assert time.monotonic() - start > 0.9
    assert found == FetchResult({}, 1, {"time-out": 1})


def test_the_deadline_of_an_evaluation_is_kept_whatever_the_wrapper_allows(failing):
    failing.behave = lambda exchange: exchange.drip(b"HTTP/1.1 200 OK\r\n" + b"X" * 900, 0.05)
    wrapper = SPARQLWrapper(failing.url)
    wrapper.setTimeout(30)
    with stopwatch() as passed:
        assert fetched(wrapper, limits=Limits(deadline_ms=300)).faults == {"time-out": 1}
        assert passed() < 0.5


def test_a_redirect_is_not_followed_and_takes_no_credentials_along(failing):
    with FaultServer() as elsewhere:
        failing.behave = lambda exchange: exchange.answer(b"", 302, {"Location": elsewhere.url})
        wrapper = SPARQLWrapper(failing.url)
        wrapper.setCredentials("ann", "secret")
        assert fetched(wrapper) == FetchResult({}, 1, {"redirect": 1})
        assert elsewhere.connections == 0


@pytest.mark.parametrize(
    ("body", "cause"), [(b"<html>", "not JSON"), (b'{"results": {"bin', "truncated")]
)
def test_what_is_no_answer_has_its_name(failing, body, cause):
    failing.behave = lambda exchange: exchange.answer(body)
    found = fetched(SPARQLWrapper(failing.url), retries=0)
    assert found == FetchResult({}, 1, {cause: 1})


def test_a_server_that_is_not_there_has_its_name():
    found = fetched(SPARQLWrapper(f"http://127.0.0.1:{free_port()}/"))
    assert not found.answers
    assert set(found.faults) == {"refused connection"}


def test_a_wrapper_that_names_a_password_in_its_address_is_refused():
    with pytest.raises(ServiceError, match="must not contain a user name or a password"):
        SparqlWrapperEndpoint(SPARQLWrapper("http://ann:secret@127.0.0.1/"), FOLLOWERS)


def test_a_wrapper_of_an_origin_that_is_not_allowed_is_refused():
    config = HttpConfig(allowed=("http://example.org",))
    with pytest.raises(ServiceError, match="is not allowed"):
        SparqlWrapperEndpoint(SPARQLWrapper("http://127.0.0.1/"), FOLLOWERS, config)


def test_a_wrapper_that_makes_its_own_requests_is_refused():
    class Signing(SPARQLWrapper):
        def _createRequest(self):  # noqa: N802
            return super()._createRequest()

    with pytest.raises(ServiceError, match="Signing makes its own requests"):
        SparqlWrapperEndpoint(Signing("http://127.0.0.1/"), FOLLOWERS)


def test_no_secret_is_shown(failing):
    wrapper = SPARQLWrapper(failing.url)
    wrapper.setCredentials("ann", "s3cret")
    endpoint = SparqlWrapperEndpoint(wrapper, FOLLOWERS)
    assert repr(endpoint) == f"Wrapped({failing.url})"
    endpoint.close()
