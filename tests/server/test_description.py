"""The OpenAPI document, against the routes, and against requests that are made from it."""

import subprocess
import sys

import pytest

from rsp_engine.server.web.app import Api
from rsp_engine.server.web.openapi import description
from tests.server.served import EX, served
from tests.thoroughness import TIMES

pytestmark = pytest.mark.outside

METHODS = {"get", "post", "put", "patch", "delete"}
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)


def test_each_route_is_described():
    routes = {(r.path, m.lower()) for r in Api.routes(object.__new__(Api)) for m in r.methods or ()}
    described = {
        (path, method)
        for path, item in description()["paths"].items()
        for method in item.keys() & METHODS
    }
    assert {(path, method) for path, method in routes if method != "head"} == described


def test_requests_made_from_the_description_are_answered_as_described(tmp_path):
    with served(tmp_path) as server:
        with server.client() as client:
            client.declare("readings", f"{EX}readings")
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"),
            *("--checks", ",".join(CHECKS), "--max-examples", str(2 * TIMES), "--seed", "1"),
            *("--request-timeout", "60", "--no-color", "--suppress-health-check", "all"),
        ]
        run = subprocess.run(  # noqa: S603 - it is our own
            command, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout[-4000:] + server.messages[-4000:]
        assert "Tested: 20" in run.stdout
        assert "Traceback" not in server.messages
