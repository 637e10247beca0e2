"""Dates, times and durations of XML Schema, as far as the tests write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction

_DATE = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2}(?:\.[0-9]+)?)"
_ZONE = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_FORMS = {
    "date": re.compile(_DATE + _ZONE),
    "dateTime": re.compile(f"{_DATE}T{_TIME}{_ZONE}"),
    "time": re.compile(_TIME + _ZONE),
}
_PERIOD = r"(-)?P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
_PARTS = re.compile(_PERIOD + r"(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?")
MONTH = Fraction(146_097 * 86_400, 4_800)
"""The mean length of a month, in seconds."""
_FOURTEEN_HOURS = 14 * 3_600


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a time: its seconds as if in UTC, and its zone in minutes, if it has one."""

    kind: str
    local: Fraction
    zone: int | None

    @property
    def instant(self) -> Fraction:
        """Return the moment in UTC; one without a zone is of UTC."""
        return self.local - 60 * (self.zone or 0)

    def text(self) -> str:
        days, seconds = divmod(self.local, 86_400)
        day = date.fromordinal(int(days) + date(1970, 1, 1).toordinal()).isoformat()
        hours, rest = divmod(seconds, 3_600)
        minutes, left = divmod(rest, 60)
        clock = f"{int(hours):02}:{int(minutes):02}:{_seconds(left).zfill(2)}"
        shown = {"date": day, "dateTime": f"{day}T{clock}", "time": clock}[self.kind]
        return shown + _zone_text(self.zone)


def _seconds(value: Fraction) -> str:
    whole, part = divmod(value, 1)
    digits = f"{int(part * 10**9):09}".rstrip("0")
    return f"{int(whole):02}.{digits}" if digits else f"{int(whole):02}"


def _zone_text(zone: int | None) -> str:
    if zone is None or zone == 0:
        return "" if zone is None else "Z"
    hours, minutes = divmod(abs(zone), 60)
    return f"{'-' if zone < 0 else '+'}{hours:02}:{minutes:02}"


def read(text: str, kind: str) -> Moment | None:
    form = _FORMS.get(kind)
    found = form.fullmatch(text) if form is not None else None
    if found is None:
        return None
    given = found.groupdict()
    days = 0
    if "year" in given:
        try:
            day = date(int(given["year"]), int(given["month"]), int(given["day"]))
        except ValueError:
            return None
        days = day.toordinal() - date(1970, 1, 1).toordinal()
    hour, minute = int(given.get("hour") or 0), int(given.get("minute") or 0)
    second = Fraction(given.get("second") or 0)
    if hour > 23 or minute > 59 or second >= 60:
        return None
    return Moment(kind, days * 86_400 + hour * 3_600 + minute * 60 + second, _zone(given["zone"]))


def _zone(text: str | None) -> int | None:
    if text is None or text == "Z":
        return None if text is None else 0
    minutes = 60 * int(text[1:3]) + int(text[4:])
    return -minutes if text[0] == "-" else minutes


def compared(operator: str, left: Moment, right: Moment) -> bool | None:
    """Tell how two moments of one kind compare; nothing where a zone that is missing decides."""
    if (left.zone is None) == (right.zone is None):
        found = left.instant < right.instant, left.instant == right.instant
    elif abs(left.instant - right.instant) <= _FOURTEEN_HOURS:
        return False if operator == "=" else None
    else:
        found = left.instant < right.instant, False
    is_less, is_equal = found
    return {"=": is_equal, "<": is_less, "<=": is_less or is_equal}[operator]


def difference(left: Moment, right: Moment) -> Duration | None:
    if left.kind != right.kind or (left.zone is None) != (right.zone is None):
        return None
    return Duration("dayTimeDuration", 0, left.instant - right.instant)


@dataclass(frozen=True, slots=True)
class Duration:
    kind: str
    months: int
    seconds: Fraction

    @property
    def length(self) -> Fraction:
        return self.seconds + self.months * MONTH

    def text(self) -> str:
        if self.length < 0:
            return "-" + replace(self, months=-self.months, seconds=-self.seconds).text()
        years, months = divmod(self.months, 12)
        days, rest = divmod(self.seconds, 86_400)
        hours, rest = divmod(rest, 3_600)
        minutes, seconds = divmod(rest, 60)
        period = "".join(f"{n}{u}" for n, u in ((years, "Y"), (months, "M"), (int(days), "D")) if n)
        clock = "".join(f"{n}{u}" for n, u in ((int(hours), "H"), (int(minutes), "M")) if n)
        if seconds:
            whole, dot, part = _seconds(seconds).partition(".")
            clock += f"{int(whole)}{dot}{part}S"
        if not period and not clock:
            return "P0M" if self.kind == "yearMonthDuration" else "PT0S"
        return f"P{period}T{clock}" if clock else f"P{period}"


def read_duration(text: str, kind: str) -> Duration | None:
    if kind not in {"duration", "dayTimeDuration", "yearMonthDuration"}:
        return None
    found = _PARTS.fullmatch(text)
    if found is None or text.endswith(("P", "T")):
        return None
    sign = -1 if found[1] else 1
    years, months, days, hours, minutes = (int(found[n] or 0) for n in range(2, 7))
    seconds = Fraction(found[7] or 0) + 60 * minutes + 3_600 * hours + 86_400 * days
    if kind == "yearMonthDuration" and (found[4] or "T" in text):
        return None
    if kind == "dayTimeDuration" and (found[2] or found[3]):
        return None
    return Duration(kind, sign * (12 * years + months), sign * seconds)
