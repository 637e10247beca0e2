"""Timestamps: a table of what is read, and of what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.files.nquads import NQuads
from rsp_engine.io.sources.times import (
    from_iso,
    from_json,
    from_number,
    from_text,
    in_milliseconds,
)
from rsp_engine.model.streams import Element

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyoxigraph import Triple

JANUARY = 1_420_574_422_000  # 2015-01-06T20:00:22Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2015-01-06T20:00:22Z", JANUARY),
        ("2015-01-06T20:00:22", JANUARY),
        ("2015-01-06 20:00:22", JANUARY),
        ("2015-01-06t20:00:22z", JANUARY),
        ("2015-01-06T21:00:22+01:00", JANUARY),
        ("2015-01-06T21:00:22+0100", JANUARY),
        ("2015-01-06T21:00:22+01", JANUARY),
        ("2015-01-06T20:00:22.000000+0:00", JANUARY),
        ("2015-01-06T14:30:22-05:30", JANUARY),
        ("2015-01-06T14:30:22-530", JANUARY),
        ("2015-01-07T10:00:22+14:00", JANUARY),
        ("2015-01-06T20:00", JANUARY - 22_000),
        ("2015-01-06T20:00:22.5Z", JANUARY + 500),
        ("2015-01-06T20:00:22.0419Z", JANUARY + 41),
        ("2015-01-06T20:00:22.999999999Z", JANUARY + 999),
        ("2015-01-05T24:00:00Z", JANUARY - 72_022_000),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ("2016-02-29T00:00:00Z", 1_456_704_000_000),
    ],
)
def test_a_date_and_time_is_read(text, expected):
    assert from_iso(text) == expected
    assert from_text(f" {text} ") == expected
    assert from_json(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not of the form"),
        ("2015-01-06", "not of the form"),
        ("2015-1-6T20:00:22Z", "not of the form"),
        ("20150106T200022Z", "not of the form"),
        ("2015-01-06T20:00:22 CET", "not of the form"),
        ("2015-01-06T20:00:22+01:", "not of the form"),
        ("2015-01-06T20:00:22,5Z", "not of the form"),
        ("2015-01-06T20:00:22Z\n", "not of the form"),
        ("٢٠١٥-01-06T20:00:22Z", "not of the form"),
        ("12015-01-06T20:00:22Z", "not of the form"),
        ("-2015-01-06T20:00:22Z", "not of the form"),
        ("2015-02-29T20:00:22Z", "not a calendar day"),
        ("2015-13-01T20:00:22Z", "not a calendar day"),
        ("0000-01-01T20:00:22Z", "not a calendar day"),
        ("2015-01-06T25:00:22Z", "not a time of day"),
        ("2015-01-06T24:00:01Z", "not a time of day"),
        ("2015-01-06T24:00:00.1Z", "not a time of day"),
        ("2015-01-06T20:60:22Z", "not a time of day"),
        ("2015-01-06T20:00:60Z", "not a time of day"),
        ("2015-01-06T20:00:22+14:01", "no valid time zone"),
        ("2015-01-06T20:00:22+01:60", "no valid time zone"),
        ("x" * 5_000, r"'x{40}\.\.\.'"),
    ],
)
def test_any_other_text_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        from_iso(text)


@given(st.datetimes(), st.integers(-14 * 60, 14 * 60))
def test_every_moment_of_the_calendar_is_read_in_every_zone(moment, minutes):
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert from_iso(zoned.isoformat()) == expected


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("0", "ms", 0),
        ("-5", "ms", -5),
        ("+5", "ms", 5),
        ("007", "ms", 7),
        ("1000.000", "ms", 1000),
        ("9223372036854775807", "ms", 2**63 - 1),
        ("-9223372036854775808", "ms", -(2**63)),
        ("0" * 5_000 + "7", "ms", 7),
        ("7", "s", 7_000),
        ("7.", "s", 7_000),
        ("7.25", "s", 7_250),
        ("7.0419", "s", 7_041),
        ("-7.0419", "s", -7_042),
        ("-7.5", "s", -7_500),
        ("9223372036854775.807", "s", 2**63 - 1),
    ],
)
def test_a_number_is_read_in_its_unit(text, unit, expected):
    assert from_number(text, unit) == expected
    assert from_text(text, unit) == expected


@pytest.mark.parametrize(
    ("text", "unit", "reason"),
    [
        ("", "ms", "not a number"),
        ("1_000", "ms", "not a number"),
        ("1e3", "ms", "not a number"),
        ("٣", "ms", "not a number"),
        (" 1", "ms", "not a number"),
        ("1.5", "ms", "not a whole number of milliseconds"),
        ("9223372036854775808", "ms", "does not fit"),
        ("-9223372036854775809", "ms", "does not fit"),
        ("9223372036854775.808", "s", "does not fit"),
        ("9" * 10_000, "ms", "does not fit"),
    ],
)
def test_any_other_number_is_refused_with_the_reason(text, unit, reason):
    with pytest.raises(ValueError, match=reason):
        from_number(text, unit)


def test_an_empty_text_is_no_time():
    with pytest.raises(ValueError, match="is missing"):
        from_text("  ")


@pytest.mark.parametrize(
    ("value", "expected"), [(1000, 1000), (1e3, 1000), (-1, -1), (2**63 - 1, 2**63 - 1)]
)
def test_a_json_number_counts_milliseconds(value, expected):
    assert from_json(value) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (True, "neither a number nor a string"),
        (None, "neither a number nor a string"),
        ([1], "neither a number nor a string"),
        (1.5, "not a whole number"),
        (float("nan"), "not a whole number"),
        (float("inf"), "not a whole number"),
        (1e300, "does not fit"),
        (2**63, "does not fit"),
        ("1000", "without them"),
    ],
)
def test_any_other_json_value_is_refused_with_the_reason(value, reason):
    with pytest.raises(ValueError, match=reason):
        from_json(value)


def _as_is(_time: int, triples: Sequence[Triple]) -> Sequence[Triple]:
    return triples


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.nq", '<http://e/a> <http://e/p> "1" <http://e/g/{}> .\n'),
        ("b.nq", "<urn:a>  <urn:p> <urn:b> <urn:g/{}> . # this line is not plain\n"),
        ("c.trig", "<urn:g/{}> {{ <urn:a> <urn:p> 1 }}\n"),
    ],
)
def test_the_digits_of_the_name_of_a_graph_are_read_in_their_unit(tmp_path, name, line, unit):
    factor = {"s": 1 / 1_000, "us": 1_000, "ns": 1_000_000}[unit]
    path = tmp_path / name
    path.write_text("".join(line.format(int(time * factor)) for time in (1_000, 7_000)))
    source = open_source(f"{path}?unit={unit}")
    elements = [element for element in source if isinstance(element, Element)]
    assert [element.timestamp for element in elements] == [1_000, 7_000]
    if isinstance(source, NQuads) and (read := source.read_columns(_as_is)) is not None:
        assert read.lines.times.tolist() == [1_000, 7_000]
    else:
        assert name != "a.nq"


def test_times_that_do_not_fit_are_not_converted_at_once():
    assert in_milliseconds(np.array([2**60]), "s") is None
