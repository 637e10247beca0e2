"""JSON lines as columns: a parser reads them equally, and queries give the same answers."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.io.blank_nodes import ElementNames
from rsp_engine.io.canonical_literals import canonical_triples
from rsp_engine.io.sources.files.jsonl import JsonLinesSource
from rsp_engine.io.sources.times import TIME_UNITS
from rsp_engine.model.streams import DeadLetter, Element
from rsp_engine.model.terms.columns import DECIMAL_KIND, DOUBLE_KIND, INTEGER_KIND
from rsp_engine.operators.scoring.term_scores import number
from tests.drivers.cut import texts
from tests.drivers.split_runs import in_splits
from tests.drivers.test_plain_lines import EX, QUERIES_ON_COLUMNS
from tests.thoroughness import examples

XSD = "http://www.w3.org/2001/XMLSchema#"
KINDS = {INTEGER_KIND: "integer", DECIMAL_KIND: "decimal", DOUBLE_KIND: "double"}
numbers = st.sampled_from(
    ("0", "7", "-3", "07", "+7", "-0", "1.5", "-0.25", "1.50", "1.", ".5", "1e3", "true", "x", "")
)
literals = st.builds(
    f'"{{}}"^^<{XSD}{{}}>'.format,
    numbers,
    st.sampled_from(("integer", "decimal", "double", "int", "date")),
)
words = st.builds(
    '"{}"{}'.format, st.text('ab é."\\\n\t/', max_size=3), st.sampled_from(("", "@en", "@EN-us"))
)
iris = st.sampled_from((f"<{EX}a>", f"<{EX}b/é>", "<urn:a>", "<a>", f"<{EX}c#d>", "_:b", "_:c"))
terms = iris | numbers | literals | words | st.just("<<( <urn:a> <urn:b> 1 )>>")
triples = st.builds(
    "{} {} {}{}".format,
    iris,
    st.sampled_from((f"<{EX}p>", f"<{EX}q>", f"<{EX}q>", "a")),
    terms,
    st.sampled_from((" .", " .", " .", ".", " . #", "")),
)
graphs = st.lists(triples, max_size=4).flatmap(
    lambda found: st.sampled_from(("\n", "\n", "\n", " ", "\r\n")).flatmap(
        lambda blank: st.sampled_from(("", "\n", "\n\n")).map(lambda end: blank.join(found) + end)
    )
)
moments = st.sampled_from(
    (0, 7, 7, 1000, 10**15, 10**18, 2**63, -5, 1.5, 2e3, 0.25, True, None, "5", [1], "")
)
iso = st.builds(
    "{}-{:02}-{:02}T{:02}:{:02}:{:02}{}{}".format,
    st.sampled_from(("1970", "2000", "1900", "2024", "0000", "0001", "x000")),
    st.integers(0, 13),
    st.integers(0, 31),
    st.integers(0, 24),
    st.sampled_from((0, 59, 60)),
    st.sampled_from((0, 59, 60)),
    st.sampled_from(("", "", ".5", ".123", ".123456", ".1234567890")),
    st.sampled_from(("Z", "Z", "", "+01:00", "-05:30", "+25:00", "z")),
)
others = st.sampled_from(("x", 'a"b', "é\n", "\\", 17, 1.5, -2, None, [1, 2], {"timestamp": 3}))
objects = st.fixed_dictionaries(
    {"timestamp": moments | iso, "graph": graphs},
    optional={
        "format": st.sampled_from(
            (
                "turtle",
                "ntriples",
                "N-Triples",
                "text/turtle; charset=utf-8",
                "trig",
                "jsonld",
                "?",
                5,
            )
        ),
        "id": others,
    },
)
broken = st.one_of(
    st.fixed_dictionaries({}, optional={"timestamp": moments, "graph": st.just(5) | graphs}),
    st.sampled_from(([], 5, "x", None)),
)
ends = st.sampled_from(("\n", "\n", "\n", "\r\n", " \n", "\n\n", ""))
kinds = st.fixed_dictionaries(
    {
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from(((",", ":"), (", ", ": "))),
        "sort_keys": st.booleans(),
    }
)


def _line(value: object, kind: dict[str, object], end: str) -> str:
    return json.dumps(value, **kind) + end  # type: ignore[arg-type]


lines = st.builds(_line, objects | objects | objects | broken, kinds, ends)
malformed = st.sampled_from(
    (
        b"{\n",
        b'{"timestamp": 7, "graph": "\xff"}\n',
        b'{"timestamp": 7, "graph": "a\tb"}\n',
        b'{"timestamp": 7, "id": "a\tb", "graph": ""}\n',
        b'{"timestamp": 7, "graph": "", "graph": "<urn:a> <urn:b> 1 ."}\n',
        b'{"timestamp": 7, "graph": "<http:\\/\\/a.org\\/b> <http:\\/\\/a.org\\/p> 1 ."}\n',
        b'{"timestamp": 007, "graph": "<http://a.org/b> <http://a.org/p> 1 ."}\n',
        b'{"timestamp": 7, "timestamp": -8, "graph": "<http://a.org/b> <http://a.org/p> 1 ."}\n',
        b'{"timestamp": 7, "graph": "<http://a.org/b> <http://a.org/p> 1 ."}}\n',
        b'{"timestamp": 7, "graph": "<http://a.org/b> <http://a.org/p> 1 .", "format": null}\n',
        b'{"format": null, "timestamp": 7, "graph": "<http://a.org/b> <http://a.org/p> 1 ."}\n',
        b"\n",
        b" \t\n",
    )
)
texts_of_lines = st.lists(lines.map(str.encode) | malformed, max_size=8).map(b"".join)


def _plain(many: int) -> bytes:
    """Return plain lines, so that few of all lines are not."""
    graph = f'<{EX}a> <{EX}p> "1"^^<{XSD}integer> .'
    return (json.dumps({"timestamp": 5, "graph": graph}) + "\n").encode() * many


@examples(2500)
@given(texts_of_lines, st.sampled_from((0, 40)), st.sampled_from(TIME_UNITS), st.booleans())
def test_columns_are_what_a_parser_reads(found, many, unit, has_mark):
    data = b"\xef\xbb\xbf" * has_mark + _plain(many) + found
    known, parsed = ElementNames("s"), ElementNames("s")
    items = list(JsonLinesSource(_Input(data), 3, unit))
    try:
        read = JsonLinesSource(_Input(data), 3, unit).read_columns(known.rename)
    except ValueError as error:
        assert str(error) == "a triple inside another"
        assert any(
            isinstance(triple.object, ox.Triple)
            for item in items
            if isinstance(item, Element)
            for triple in item.triples
        )
        return
    event("in columns" if read else "by elements")
    if read is None:
        return
    elements = [item for item in items if isinstance(item, Element)]
    triples = [
        triple
        for element in elements
        for triple in parsed.rename(element.timestamp, canonical_triples(element.triples))
    ]
    columns, every = read.lines, np.arange(len(read.lines))
    assert known.state() == parsed.state()
    assert [str(t) for t in triples] == columns.triples(every)
    assert [str(t.subject) for t in triples] == columns.subjects(every)
    assert [str(t.object) for t in triples] == columns.objects(every)
    for coded, written in (
        (columns.subject_codes(every), columns.subjects(every)),
        (columns.object_codes(every), columns.objects(every)),
    ):
        assert [coded.texts[code] for code in coded.codes] == written
        assert len(set(coded.texts)) == len(coded.texts)
    for predicate in {str(t.predicate) for t in triples}:
        having = [n for n, t in enumerate(triples) if str(t.predicate) == predicate]
        assert columns.matching(predicate.encode()).tolist() == having
    for triple, value, kind in zip(triples, columns.values, columns.kinds, strict=True):
        if kind in KINDS:
            assert isinstance(triple.object, ox.Literal)
            assert triple.object.datatype.value == XSD + KINDS[kind]
            assert str(number(triple.object)) == str(value.item())
        else:
            assert np.isnan(value)
    starts = np.flatnonzero(columns.begins).tolist()
    assert [len(e.triples) for e in elements] == np.diff([*starts, len(columns)]).tolist()
    assert [e.timestamp for e in elements for _ in e.triples] == columns.times.tolist()
    assert [letter for _, letter in read.letters] == [i for i in items if i not in elements]
    before = [
        sum(len(item.triples) for item in items[:at] if isinstance(item, Element))
        for at, item in enumerate(items)
        if isinstance(item, DeadLetter)
    ]
    assert [at for at, _ in read.letters] == before


@pytest.mark.parametrize("kind", [{}, {"separators": (",", ":")}, {"sort_keys": True}])
@pytest.mark.parametrize("time", [1_700_000_000_000, "2024-03-01T09:00:02.250+01:00"])
@pytest.mark.parametrize("value", ["19", "-1.5", f'\\"19\\"^^<{XSD}integer>', '\\"é b\\"@en'])
def test_lines_as_programs_write_them_are_not_parsed(kind, time, value):
    graph = f"<{EX}a> <{EX}p> {value} .\n<{EX}b> <{EX}p> {value} .\n".replace("\\", "")
    line = {"id": "x-{}", "timestamp": time, "graph": graph, "window": {"open": 3, "close": 17}}
    text = "".join(
        json.dumps({**line, "id": f"x-{n}"}, ensure_ascii=False, **kind) + "\n" for n in range(3)
    )
    source = JsonLinesSource(_Input(text.encode()))
    elements = list(source)
    with patch.object(JsonLinesSource, "_read", lambda *_: pytest.fail("a line is parsed")):
        read = source.read_columns(lambda _, triples: triples)
    assert read is not None
    assert read.lines.begins.tolist() == [True, False] * 3
    assert read.lines.times[::2].tolist() == [
        e.timestamp for e in elements if isinstance(e, Element)
    ]


class _Input:
    name = "a.jsonl"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def chunks(self):
        yield self._data


mentions = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.lists(
            st.tuples(
                st.sampled_from(("a", "b", "c")),
                st.sampled_from("pppq"),
                st.sampled_from(
                    (
                        *map(str, range(4)),
                        "1.5",
                        f'"2"^^<{XSD}integer>',
                        f'"1.5"^^<{XSD}double>',
                        f'"02"^^<{XSD}integer>',
                        '"a b"@en',
                        '"é"',
                        f"<{EX}a>",
                        "_:b",
                        "malformed",
                    )
                ),
            ),
            min_size=1,
            max_size=3,
        ),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("query", QUERIES_ON_COLUMNS)
@examples(60)
@given(found=mentions, step=st.integers(1, 12), in_order=st.booleans(), size=st.integers(1, 4000))
def test_columns_give_the_same_answers(query, found, step, in_order, size):
    remote = ox.Store()
    remote.extend(
        ox.Quad(ox.NamedNode(EX + s), ox.NamedNode(f"{EX}f"), ox.Literal(n))
        for n, s in enumerate("abc")
    )
    chosen = sorted(found) if in_order else found
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        with path.open("w") as file:
            for time, rows, is_ascii in chosen:
                graph = "".join(f"<{EX}{s}> <{EX}{p}> {v} .\n" for s, p, v in rows)
                value = {"timestamp": time, "graph": graph}
                file.write(json.dumps(value, ensure_ascii=is_ascii) + "\n")

        def answers() -> list[str]:
            letters: list[DeadLetter] = []
            engine = Engine(max_delay=5, t0=-1, n=1, budget=1, dead_letter=letters.append)
            if "SERVICE" in query:
                engine.service(f"{EX}svc", remote)
            engine.register(query.format(step))
            engine.bind(f"{EX}s", str(path))
            return [*texts(engine), *map(str, letters)]

        with in_splits(are_split=False):
            expected = answers()
        assert answers() == expected
        with in_splits(size=size):
            assert answers() == expected
            with patch.object(JsonLinesSource, "read_columns", lambda *_: None):
                assert answers() == expected
