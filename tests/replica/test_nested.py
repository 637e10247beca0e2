"""SERVICE inside of SERVICE is found, wherever it hides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rsp_engine.errors import ServiceError
from rsp_engine.replica.sparql_client.nested import holds_service, refuse_nested
from tests.replica.drawn import PATTERN


@pytest.mark.parametrize(
    "body",
    [
        "{ SERVICE <http://e.org/s> { ?s ?p ?o } }",
        "{ service SILENT ?x { } }",
        "{ OPTIONAL{SERVICE<http://e.org/s>{}} }",
        "{ ?s ?p 1SERVICE <http://e.org/s> { } }",
        "{ ?s ?p 'a'SERVICE <http://e.org/s> { } }",
        "{ ?s ?p true SERVICE <http://e.org/s> { } }",
        "{ # it's a comment \n SERVICE <http://e.org/s> { } # it's \n }",
        "{ FILTER(?a<'b>') SERVICE <http://e.org/s> { } FILTER(?c='z') }",
        "{ FILTER(?a<?b#>'''\n) SERVICE <http://e.org/s> { } FILTER(?c='''z''') }",
        r"{ ?s ?p 'a\'' SERVICE <http://e.org/s> { } }",
        r"{ ?s ?p 'a\u0027 SERVICE <http://e.org/s> { } #' }",
        r"{ S\U00000045RVICE <http://e.org/s> { } }",
        '{ ?s ?p """a""" SERVICE <http://e.org/s> { ?s ?p """b""" } }',
        '{ ?s ?p "a\nSERVICE <http://e.org/s> { } "}',
    ],
)
def test_a_nested_service_is_found_and_refused(body):
    assert holds_service(body)
    with pytest.raises(ServiceError, match="contains another SERVICE"):
        refuse_nested(replace(PATTERN, body=body))


@pytest.mark.parametrize(
    "body",
    [
        PATTERN.body,
        "{ ?service <http://e.org/service#service> $SERVICE }",
        '{ ?s ?p \'SERVICE\', "SERVICE", \'\'\'a\'SERVICE\'\'\', """a"" SERVICE""" }',
        "{ ?s ?p 'x'@service . _:service ?q ?r } # SERVICE",
        r"{ ?s ?p 'a \' SERVICE', 'b\\', 'SERVICE' }",
        "{ ?s ?p <http://e.org/O'Brien>, 'SERVICE' FILTER(?a < 3 && ?b > 4) }",
    ],
)
def test_what_only_looks_like_one_is_let_through(body):
    assert not holds_service(body)
    refuse_nested(replace(PATTERN, body=body))
