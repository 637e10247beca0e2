"""JSON lines as columns: a parser reads them equally, and queries give the same answers."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.io.blank_nodes import ElementNames
from rsp_engine.io.canonical_literals import TripleTermError, canonical_triples
from rsp_engine.io.sources.files.jsonl import JsonLinesSource
from rsp_engine.io.sources.times import TIME_UNITS
from rsp_engine.model.streams import DeadLetter, Element
from rsp_engine.model.terms.columns import DECIMAL_KIND, DOUBLE_KIND, INTEGER_KIND
from rsp_engine.model.terms.fingerprints import fingerprints_of
from rsp_engine.operators.scoring.term_scores import number
from tests.drivers.test_plain_lines import (
    EX,
    QUERIES_ON_COLUMNS,
    assert_columns_change_no_answer,
)
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.io.sources.columns.quad_lines import InColumns
    from rsp_engine.io.sources.times import TimeUnit

XSD = "http://www.w3.org/2001/XMLSchema#"
KINDS = {INTEGER_KIND: "integer", DECIMAL_KIND: "decimal", DOUBLE_KIND: "double"}
PLAIN = f"<{EX}a> <{EX}p>"
values = st.sampled_from(
    (
        *("0", "7", "-3", "1.5", "-0.25", f'"7"^^<{XSD}integer>', f'"1.5"^^<{XSD}double>'),
        *("07", "+7", "-0", "1.50", "1.", ".5", "1e3", "true", "x", "", "_:b", "_:c"),
        *(f'"07"^^<{XSD}integer>', f'"x"^^<{XSD}integer>', f'"7"^^<{XSD}int>', '"7"^^<urn:a>'),
        *('"a b"', '"é"@en', '"é"@EN-us', '"a/b"', '"a . b"', '""', '"a\\"b"', '"a\tb"', '"a\nb"'),
        *(f"<{EX}a>", f"<{EX}b/é>", f"<{EX}c#d>", "<urn:a>", "<a>", "<<( <urn:a> <urn:b> 1 )>>"),
    )
)
triples = st.builds(
    "{} {}{}".format,
    st.sampled_from((*[PLAIN] * 5, f"<{EX}b> <{EX}q>", f"_:b <{EX}p>", f"<{EX}a> a", "<a> <b>")),
    values,
    st.sampled_from((*[" ."] * 6, ".", " . #", "")),
)
graphs = st.builds(
    "{}{}".format,
    st.builds(
        str.join,
        st.sampled_from(("\n", "\n", "\n", " ", "\r\n")),
        st.lists(triples, min_size=1, max_size=3),
    ),
    st.sampled_from(("", "\n", "\n\n")),
)
moments = st.sampled_from((0, 7, 7, 1000, 10**15, 10**18, 2**63))
wrong_moments = st.sampled_from((-5, 1.5, 2e3, 0.25, True, None, "5", [1], ""))
iso = st.builds(
    "{}-{:02}-{:02}T{:02}:{}:{}{}{}".format,
    st.sampled_from(("1970", "2000", "1900", "2024", "0000", "0001")),
    st.sampled_from((2, 2, 4, 12, 0, 13)),
    st.sampled_from((1, 28, 29, 30, 31, 0)),
    st.sampled_from((0, 23, 24)),
    st.sampled_from(("00", "59", "60", "x0")),
    st.sampled_from(("00", "59", "60")),
    st.sampled_from(("", "", ".5", ".123", ".123456", ".1234567890")),
    st.sampled_from(("Z", "Z", "", "+01:00", "-05:30", "+25:00", "z")),
)
others = st.sampled_from(
    ("x", "x-17", 'a"b', "é\n", "\\", 17, 0, 1.5, -2, None, [1, 2], {"timestamp": 3, "n": 0})
)
formats = (
    "turtle",
    "ntriples",
    "N-Triples",
    "text/turtle; charset=utf-8",
    "trig",
    "jsonld",
    "?",
    5,
)
objects = st.fixed_dictionaries(
    {"timestamp": moments | moments | iso | wrong_moments, "graph": graphs},
    optional={"format": st.sampled_from(formats), "id": others},
)
broken: st.SearchStrategy[object] = st.one_of(
    st.fixed_dictionaries(
        {}, optional={"timestamp": moments, "graph": st.sampled_from((5, "", "#")) | graphs}
    ),
    st.sampled_from(([], 5, "x", None)),
)
spacings = st.sampled_from(((",", ":"), (", ", ": ")))
ends = st.sampled_from(("\n", "\n", "\n", "\n", "\r\n", " \n", "\n\n"))
LINE = b'{"timestamp": 7, "id": "x", "graph": "<http://a.org/b> <http://a.org/p> 1 ."}\n'
NEARLY = (
    LINE[:-1],
    b"{\n",
    b"\n",
    b" \t\n",
    LINE.replace(b'"x"', b'"\xff"'),
    LINE.replace(b'"x"', b'"a\tb"'),
    LINE.replace(b'"x"', b'"\\t\\u00e9"'),
    LINE.replace(b'"x"', b'"a\x7fb"'),
    LINE.replace(b'"x"', b"null"),
    LINE.replace(b'"id"', b'"graph"'),
    LINE.replace(b'"id"', b'"timestamp"'),
    LINE.replace(b'"id"', b'"format"'),
    LINE.replace(b'"x"', b'"x", "timestamp": -8'),
    LINE.replace(b'"x"', b'"x", "format": null'),
    LINE.replace(b'"x"', b'{"graph": 1, "timestamp": [7, 8]}'),
    LINE.replace(b" 1 .", b' \\"\xff\\" .'),
    LINE.replace(b" 1 .", b' \\"\xc3\xa9\\" .'),
    LINE.replace(b" 1 .", b' \\"a\tb\\" .'),
    LINE.replace(b" 1 .", b' \\"a\\\\\\"b\\" .'),
    LINE.replace(b" 1 .", b' \\"a\\\\" .'),
    LINE.replace(b" 1 .", b" 1 .\\n<http://a.org/b> <http://a.org/p> 1 ."),
    LINE.replace(b" 1 .", b' 1 .\\n<http://a.org/b> <http://a.org/p> \\"1\\"^^<urn:a> .'),
    LINE.replace(b" 1 .", b" <http://a.org/c> .\\n\\n"),
    LINE.replace(b"http://", b"http:\\/\\/"),
    LINE.replace(b": 7", b": 007"),
    LINE.replace(b": 7", b": 0"),
    LINE.replace(b": 7", b": -7"),
    LINE.replace(b": 7", b": 7.0"),
    LINE.replace(b": 7", b":  7"),
    LINE.replace(b": 7", b": 999999999999999999"),
    LINE.replace(b": 7", b": 9999999999999999999"),
    LINE.replace(b": 7", b": "),
    LINE.replace(b"}", b"}}"),
    LINE.replace(b"}", b', "n": 3}'),
    LINE.replace(b"{", b'{"format": null, '),
    LINE.replace(b"{", b'{"format": "ntriples", '),
    LINE.replace(b"{", b"[{").replace(b"}", b"}]"),
)


@st.composite
def texts_of_lines(draw: st.DrawFn) -> bytes:
    """Draw lines, most of which are written by one program."""
    spacing, is_ascii = draw(spacings), draw(st.booleans())
    lines = draw(st.lists(st.tuples(objects | objects | objects | broken, ends), max_size=6))
    text = [
        (json.dumps(value, ensure_ascii=is_ascii, separators=spacing) + end).encode()
        for value, end in lines
    ]
    return b"".join(draw(st.permutations([*text, *draw(st.lists(st.sampled_from(NEARLY)))])))


@examples(2500)
@given(texts_of_lines(), st.sampled_from((0, 40, 40)), st.sampled_from(TIME_UNITS), st.booleans())
def test_columns_are_what_a_parser_reads(found, many, unit, has_mark):
    is_read = _compare(b"\xef\xbb\xbf" * has_mark + LINE * many + found, unit)
    event("in columns" if is_read else "by elements")


@pytest.mark.parametrize("line", NEARLY)
@pytest.mark.parametrize("repeated", [1, 3])
def test_columns_of_lines_that_are_nearly_plain(line, repeated):
    assert _compare(LINE * 20 + line * repeated + LINE, "ms")


@examples(600)
@given(st.lists(iso, min_size=1, max_size=9))
def test_columns_of_iso_times(times):
    example = "2024-02-29T23:59:59"
    lines = [LINE.replace(b"7", json.dumps(time).encode()) for time in [example, *times]]
    assert _compare(LINE * 30 + b"".join(lines), "s")


@examples(600)
@given(st.lists(values, min_size=1, max_size=4), st.sampled_from(formats[:2]))
def test_columns_of_elements_with_several_triples(found, syntax):
    graph = "\n".join(f"{PLAIN} {value} ." for value in found)
    line = json.dumps({"timestamp": 7, "format": syntax, "graph": graph}, ensure_ascii=False) + "\n"
    _compare(LINE * 20 + line.encode() * 2, "ms")


def _compare(data: bytes, unit: TimeUnit) -> bool:
    """Check that columns are equal to parsed elements; return whether there are columns."""
    source = JsonLinesSource(_Input(data), unit)
    return columns_are_elements(source, list(source))


def columns_are_elements(source: InColumns, items: Sequence[Element | DeadLetter]) -> bool:
    """Check that columns are equal to elements; return whether there are columns."""
    known, parsed = ElementNames("s"), ElementNames("s")
    if any(isinstance(t.object, ox.Triple) for i in items for t in getattr(i, "triples", ())):
        with suppress(TripleTermError):
            assert source.read_columns(known.rename) is None
        return False
    read = source.read_columns(known.rename)
    if read is None:
        return False
    elements = [item for item in items if isinstance(item, Element)]
    triples = [
        triple
        for element in elements
        for triple in parsed.rename(element.timestamp, canonical_triples(element.triples))
    ]
    columns, every = read.lines, np.arange(len(read.lines))
    assert known.state() == parsed.state()
    assert [str(t) for t in triples] == columns.triples(every)
    assert columns.fingerprints().tolist() == fingerprints_of([str(t) for t in triples]).tolist()
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
    return True


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


JOIN = (
    f"PREFIX : <{EX}> SELECT ?s ?v ?w FROM NAMED WINDOW :w ON :s [RANGE 10ms STEP {{}}ms]"
    " WHERE {{ WINDOW :w {{ ?s :p ?v . ?s :q ?w }} }}"
)


@pytest.mark.parametrize("query", [*QUERIES_ON_COLUMNS, JOIN])
@examples(60)
@given(found=mentions, step=st.integers(1, 12), in_order=st.booleans(), size=st.integers(1, 4000))
def test_columns_give_the_same_answers(query, found, step, in_order, size):
    lines = []
    for time, rows, is_ascii in sorted(found) if in_order else found:
        graph = "".join(f"<{EX}{s}> <{EX}{p}> {v} .\n" for s, p, v in rows)
        lines.append(json.dumps({"timestamp": time, "graph": graph}, ensure_ascii=is_ascii) + "\n")
    text = "".join(lines)
    assert_columns_change_no_answer(query.format(step), "s.jsonl", text, size, JsonLinesSource)
