"""Where requests go, and with which secrets: as configured, and nowhere else."""

from __future__ import annotations

import base64
import copy
import pickle

import pytest

from rsp_engine.errors import ServiceError
from rsp_engine.http_client.access import (
    allowed_origin,
    credentials_of,
    origin_of,
    variables_of,
)
from rsp_engine.replica.endpoints.endpoint import UNLIMITED
from rsp_engine.replica.endpoints.http import HttpConfig, HttpEndpoint
from tests.replica.fault_server import FaultServer
from tests.replica.patterns import FOLLOWERS, users

SECRET = "Tr0ub4dor&3"  # noqa: S105 - a password that protects nothing


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://a.org/sparql", "http://a.org"),
        ("http://a.org:80/sparql", "http://a.org/another/path"),
        ("HTTPS://A.org", "https://a.org:443"),
        ("http://[::1]:3030/ds?graph=x", "http://[::1]:3030"),
    ],
)
def test_the_same_scheme_host_and_port_are_the_same_origin(url, allowed):
    assert allowed_origin(url, ["http://other.org", allowed]) == origin_of(allowed)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://a.org", "https://a.org"),
        ("http://a.org:81", "http://a.org"),
        ("http://b.a.org", "http://a.org"),
        ("http://a.org.b.org", "http://a.org"),
        ("http://169.254.169.254/latest", "http://a.org"),
    ],
)
def test_another_origin_is_not_allowed(url, allowed):
    with pytest.raises(ServiceError, match="is not allowed"):
        allowed_origin(url, [allowed])


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (f"http://user:{SECRET}@a.org/sparql", "user name or a password"),
        (f"http://{SECRET}@a.org/sparql", "user name or a password"),
        ("ftp://a.org", "must begin with http"),
        ("file:///etc/passwd", "must begin with http"),
        ("a.org/sparql", "must begin with http"),
        ("http:///sparql", "must name a host"),
        ("http://a.org:99999/", "is not valid"),
        ("http://a.org:x/", "is not valid"),
        ("http://a.org\\@b.org/", "must not contain"),
        ("http://a.org/ x", "must not contain"),
        ("http://a.org/\r\nX: y", "must not contain"),
        ("http://[::1/", "cannot be read"),
    ],
)
def test_a_bad_url_is_refused_with_the_reason_and_not_shown(url, reason):
    with pytest.raises(ServiceError, match=reason) as error:
        HttpEndpoint(url, FOLLOWERS, HttpConfig(allowed=("http://a.org",)), {})
    assert SECRET not in str(error.value)


def test_an_origin_that_is_not_allowed_is_refused_before_anything_is_sent():
    with FaultServer() as server:
        with pytest.raises(ServiceError, match="is not allowed"):
            HttpEndpoint(server.url, FOLLOWERS, HttpConfig(allowed=("http://a.org",)), {})
        with pytest.raises(ServiceError, match="is not allowed"):
            HttpEndpoint(server.url, FOLLOWERS, HttpConfig(allowed=()), {})
    assert server.connections == 0


def _asked_with(environment: dict[str, str], **settings: str) -> str | None:
    """Return the Authorization header that a server sees."""
    with FaultServer() as server:
        config = HttpConfig(allowed=(server.url,), **settings)  # type: ignore[arg-type]
        prefix = settings.get("credentials", variables_of(origin_of(server.url)))
        named = {f"{prefix}_{name}": value for name, value in environment.items()}
        remote = HttpEndpoint(server.url, FOLLOWERS, config, named)
        assert remote.fetch(users(1), UNLIMITED, 0).faults == {}
        assert SECRET not in repr(remote)
        remote.close()
    return server.seen_headers[0].get("Authorization")


def test_credentials_come_from_the_variables_of_the_service():
    pair = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert _asked_with({}) is None
    assert _asked_with({"TOKEN": SECRET}) == f"Bearer {SECRET}"
    assert _asked_with({"USER": "me", "PASSWORD": SECRET}) == f"Basic {pair}"
    assert _asked_with({"TOKEN": SECRET}, credentials="MINE") == f"Bearer {SECRET}"


def test_a_service_does_not_see_the_variables_of_another():
    with FaultServer() as server:
        remote = HttpEndpoint(
            server.url,
            FOLLOWERS,
            HttpConfig(allowed=(server.url,)),
            {"RSP_SERVICE_TOKEN": SECRET, "RSP_SERVICE_127_0_0_1_1_TOKEN": SECRET},
        )
        remote.fetch(users(1), UNLIMITED, 0)
        remote.close()
    assert "Authorization" not in server.seen_headers[0]


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"P_USER": SECRET}, "P_USER and P_PASSWORD must be set together"),
        ({"P_PASSWORD": SECRET}, "P_USER and P_PASSWORD must be set together"),
        ({"P_TOKEN": SECRET, "P_USER": "me"}, "both set"),
        ({"P_TOKEN": f"{SECRET}\r\nX-More: 1"}, "characters that no token has"),
        ({"P_TOKEN": ""}, "characters that no token has"),
        ({"P_USER": f"a:{SECRET}", "P_PASSWORD": "x"}, "must not contain a colon"),
    ],
)
def test_bad_credentials_are_refused_with_the_reason_and_not_shown(environment, reason):
    with pytest.raises(ServiceError, match=reason) as error:
        credentials_of("P", environment)
    assert SECRET not in str(error.value)


def test_credentials_are_shown_and_saved_nowhere():
    secret = credentials_of("P", {"P_TOKEN": SECRET})
    assert repr(secret) == "Credentials(redacted)"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        copy.copy(secret)


def test_proxies_and_passwords_of_the_environment_are_not_used(monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with FaultServer() as server, FaultServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("NO_PROXY", "")
        remote = HttpEndpoint(server.url, FOLLOWERS, HttpConfig(allowed=(server.url,)))
        assert remote.fetch(users(1), UNLIMITED, 0).faults == {}
        remote.close()
    assert proxy.connections == 0
    assert "Authorization" not in server.seen_headers[0]


@pytest.mark.parametrize("name", ["batch_keys", "batch_bytes", "page_rows", "answer_bytes"])
def test_a_bound_of_nothing_is_refused(name):
    with pytest.raises(ServiceError, match=f"{name} must be positive"):
        HttpConfig(allowed=(), **{name: 0})  # type: ignore[arg-type]
    with pytest.raises(ServiceError, match="retries must not be negative"):
        HttpConfig(allowed=(), retries=-1)
