"""Plain lines: a parser reads them equally, and queries give the same answers."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.io.sources.fast_nquads.plain_lines import plain_lines
from rsp_engine.io.sources.files.nquads import NQuads
from rsp_engine.model.streams import Element
from rsp_engine.operators.scoring.term_scores import number
from tests.drivers.cut import texts
from tests.drivers.split_runs import in_splits
from tests.thoroughness import examples

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
names = st.text("ab0-._/:#~% é<", max_size=4)
iris = st.builds("<{}://{}>".format, st.sampled_from(("http", "https", "urn")), names)
numbers = st.sampled_from(
    ("0", "7", "-3", "07", "1.5", "-0.25", "1.50", "1e3", "x", "", "12345678901")
)
kinds = st.sampled_from(("integer", "decimal", "double", "string", "date"))
literals = st.builds(f'"{{}}"^^<{XSD}{{}}>'.format, numbers, kinds)
words = st.builds('"{}"{}'.format, st.text('ab ."\\', max_size=3), st.sampled_from(("", "@en")))
terms = iris | literals | words | st.just("_:b")
blanks = st.sampled_from((" ", " ", " ", "  ", "\t"))
ends = st.sampled_from((" .\n", " .\n", " .\n", ".\n", " . \n", " .\r\n", " .", " . #\n"))
lines = st.builds(
    "{0}{4}{1} {2} {3}{5}".format,
    iris | st.just(f"<{EX}a>"),
    iris | st.just(f"<{EX}p>"),
    terms,
    st.builds(f"<{EX}{{}}>".format, st.from_regex(r"\A[a-z0-9]{0,20}\Z")) | iris,
    blanks,
    ends,
)


@examples(500)
@given(st.lists(lines, max_size=4))
def test_what_is_plain_is_what_a_parser_reads(found):
    data = "".join(found).encode()
    plain = plain_lines(data)
    event("plain" if plain else "not plain")
    if plain is None or not len(plain):
        return
    quads = list(ox.parse(data, ox.RdfFormat.N_QUADS))
    every = np.arange(len(quads))
    assert [str(q.subject) for q in quads] == plain.subjects(every)
    assert [str(q.object) for q in quads] == plain.objects(every)
    assert [str(q.triple) for q in quads] == plain.triples(every)
    for predicate in {str(q.predicate) for q in quads}:
        having = [n for n, q in enumerate(quads) if str(q.predicate) == predicate]
        assert plain.matching(predicate.encode()).tolist() == having
    assert [str(number(q.object)) for q in quads] == [
        "None" if np.isnan(value) else str(value) for value in plain.values.tolist()
    ]
    elements = [item for item in NQuads(_Input(data)) if isinstance(item, Element)]
    assert sum(len(element.triples) for element in elements) == len(plain)
    assert len(elements) == plain.begins.sum()
    times = [element.timestamp for element in elements for _ in element.triples]
    assert times == plain.times.tolist()


class _Input:
    name = "a.nq"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def chunks(self):
        yield self._data


HEAD = f"PREFIX : <{EX}> SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE 10ms STEP {{}}ms]"
QUERIES = (
    "WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 2",
    "WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY ?v LIMIT 1",
    "WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v * 2 - 1) LIMIT 3",
    "WHERE {{ WINDOW :w {{ ?s :p ?v }} SERVICE :svc {{ ?s :f ?f }} }}"
    " ORDER BY DESC(?v + ?f) LIMIT 2",
)
mentions = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from("abc"),
        st.sampled_from("pppq"),
        st.sampled_from((*(f'"{n}"^^<{XSD}integer>' for n in range(4)), f'"1.5"^^<{XSD}double>')),
    ),
    min_size=1,
    max_size=60,
)


@pytest.mark.parametrize("query", QUERIES)
@examples(60)
@given(found=mentions, step=st.integers(1, 12), in_order=st.booleans(), size=st.integers(1, 2000))
def test_plain_lines_give_the_same_answers(query, found, step, in_order, size):
    remote = ox.Store()
    remote.extend(
        ox.Quad(ox.NamedNode(EX + s), ox.NamedNode(f"{EX}f"), ox.Literal(n))
        for n, s in enumerate("abc")
    )
    chosen = sorted(found) if in_order else found
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.nq"
        path.write_text(
            "".join(f"<{EX}{s}> <{EX}{p}> {v} <{EX}g/{t}> .\n" for t, s, p, v in chosen)
        )

        def answers() -> list[str]:
            engine = Engine(max_delay=5, t0=-1, n=1, budget=1)
            if "SERVICE" in query:
                engine.service(f"{EX}svc", remote)
            engine.register(HEAD.format(step) + query.format())
            engine.bind(f"{EX}s", str(path))
            return texts(engine)

        with in_splits(are_split=False):
            expected = answers()
        assert answers() == expected
        with in_splits(size=size):
            assert answers() == expected
            with patch.object(NQuads, "plain_lines", lambda _: None):
                assert answers() == expected
