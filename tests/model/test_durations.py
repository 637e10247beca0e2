"""Durations: text to milliseconds and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.quantities import format_duration, parse_duration


@given(st.integers(-(10**15), 10**15))
def test_a_duration_is_read_back_from_its_text(milliseconds):
    assert parse_duration(format_duration(milliseconds)) == milliseconds
    assert parse_duration(str(milliseconds)) == milliseconds


@given(*[st.integers(0, 10**6)] * 4)
def test_an_xsd_duration_is_the_sum_of_its_parts(days, hours, minutes, seconds):
    expected = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    assert parse_duration(f"P{days}DT{hours}H{minutes}M{seconds}S") == expected
    assert parse_duration(f"-P{days}DT{hours}H{minutes}M{seconds}.5S") == -expected - 500


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "9 m", "m", "1.2.3s", "٣s", "PT9", "P9"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="it is not of the form"):
        parse_duration(text)
