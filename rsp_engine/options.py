"""The options of an engine, each declared once with its default, its unit and its help.

A keyword of `Engine`, a flag of `rsp run` and `rsp explain`, a key of `rsp.toml` and a variable of
the environment are derived from each field, and so is `docs/reference/options.md`.

>>> WindowOptions(max_delay="5s")
WindowOptions(bounds='(]', t0=0, report='nonempty', max_delay=5000)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import ClassVar, Literal, TypeVar, get_args

from rsp_engine.model.option import DurationLike, Options, option
from rsp_engine.model.quantities import Rate, parse_duration, parse_rate
from rsp_engine.model.streams import DeadLetter
from rsp_engine.model.windows import Bounds

__all__ = [
    "OPERATORS",
    "ArrivalRule",
    "EngineOptions",
    "MatchRule",
    "ObjectMemory",
    "OperatorName",
    "RankingOptions",
    "ReplicaStart",
    "ReportKind",
    "RunOptions",
    "RunnerName",
    "ServiceOptions",
    "TimeStyle",
    "WindowOptions",
]

ReportKind = Literal["nonempty", "every"]
"""The windows that are evaluated: those with content, or all."""

MatchRule = Literal["window", "element"]
"""The scope in which a WINDOW block is matched: the whole window, or each element separately."""

ArrivalRule = Literal["latest", "all"]
"""The arrivals of a join key that count within a window."""

ObjectMemory = Literal["table", "list"]
"""What is kept of the objects of open windows: all, or those of the Super-MTK+N list."""

OperatorName = Literal[
    "auto", "mintopk", "sap", "sap-dynamic", "sap-equal", "pretopk", "skyband", "sma", "sma-ring",
    "eaa", "sla", "approximate", "oracle", "general",
]  # fmt: skip
OPERATORS: tuple[OperatorName, ...] = get_args(OperatorName)

ReplicaStart = Literal["snapshot", "cache"]
"""The content of a replica at the start: all remote data, or nothing."""

TimeStyle = Literal["ms", "iso"]
"""How answers write times: in milliseconds since 1970, or as ISO 8601."""

RunnerName = Literal["auto", "local", "spark"]
"""Where queries run: in this process alone, on Spark, or where the engine decides."""


@dataclass(frozen=True, kw_only=True)
class WindowOptions(Options):
    """The options of windows: their edges, and when they are evaluated."""

    title: ClassVar[str] = "Windows"

    bounds: Bounds = option(
        "(]", "Which edge of a window belongs to it: the right one, as in RSP-QL, or the left one."
    )
    t0: int = option(0, "When the first window opens, in ms of event time.", unit="ms")
    report: ReportKind = option(
        "nonempty", "Which windows are evaluated: nonempty ones, or every one."
    )
    max_delay: DurationLike = option(
        0, "How late an element may be, such as 5s, PT5S or 5000.", unit="ms", minimum=0
    )


@dataclass(frozen=True, kw_only=True)
class RankingOptions(Options):
    """The options of ranked queries: how they are evaluated and judged."""

    title: ClassVar[str] = "Ranked queries"

    operator: OperatorName = option(
        "auto", "The operator of ranked queries; with auto the planner chooses."
    )
    match: MatchRule = option(
        "window",
        "Whether a WINDOW block is matched over the whole window, or in one element at a time, so"
        " that no solution spans two elements; ranked queries of several patterns then take a"
        " top-k operator.",
    )
    arrivals: ArrivalRule | None = option(
        None, "Which arrivals of a join key count within a window.", unset="the latest"
    )
    memory: ObjectMemory = option(
        "table",
        "Whether a ranked query with SERVICE keeps every object of its open windows, or only the"
        " list of the best; answers are then approximate where a forgotten one returns, and say"
        " so.",
    )
    max_instances: int | None = option(
        None,
        "How many instances to keep of objects whose attributes arrive on several streams; with a"
        " limit, answers are approximate, and say so.",
        unit="instances",
        metavar="N",
        unset="no limit",
        minimum=1,
    )
    oracle: bool = option(
        False, "Score each ranked answer against all remote data, fetched outside the budget."
    )


@dataclass(frozen=True, kw_only=True)
class ServiceOptions(Options):
    """The options of remote data: the refresh policy, the cost limits, and the replica."""

    title: ClassVar[str] = "Remote data"

    policy: str | None = option(
        None,
        "The refresh policy: WST, WSJ-..., AT-... or EXACT, or FILE.py:NAME of your own.",
        metavar="NAME",
        unset="the planner chooses",
    )
    budget: int | str = option(
        10,
        "How many remote keys an evaluation may fetch; or how long it may fetch, such as 80ms, from"
        " which the number is learned.",
        metavar="N|DURATION",
        counts=True,
    )
    service_budget: Sequence[str] = option(
        (),
        "A service and how many of its keys all queries together may fetch in any span of event"
        " time, such as 100/10s; they then share its replica (repeatable).",
        metavar="IRI=N/DURATION",
    )
    weight: Sequence[str] = option(
        (),
        "A query and its weight in the budgets of services; 1 by default (repeatable).",
        metavar="QUERY=NUMBER",
    )
    n: int = option(10, "How many objects to keep beyond the k best.", unit="objects")
    max_requests: int | None = option(
        None, "How many requests an evaluation may send.", unit="requests", unset="no limit"
    )
    max_rate: str | None = option(
        None,
        "How many requests each service may get in any span of real time, such as 20/1s; others"
        " wait, as long as the deadline allows.",
        metavar="N/DURATION",
        unset="no limit",
    )
    deadline: DurationLike | None = option(
        None,
        "How long an evaluation may wait for remote data, such as 500ms.",
        unit="ms",
        unset="no limit",
        minimum=0,
    )
    seed: int = option(0, "The seed of policies that use randomness.", metavar="N")
    replica: ReplicaStart = option(
        "snapshot", "Load all remote data first (snapshot), or on cache misses (cache)."
    )
    capacity: int | None = option(
        None, "How many remote keys the replica keeps.", unit="keys", unset="all"
    )
    elected: bool = option(
        False,
        "Whether statistics of answers list the keys that the policy has elected, each with the"
        " policy's value and what its fetch gave.",
    )
    change_interval: DurationLike | None = option(
        None,
        "How often each remote key changes, such as 1m.",
        unit="ms",
        unset="it is learned",
        minimum=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.budget, int) and self.budget < 0:
            raise ValueError("the budget must not be negative")
        if self.n < 0:
            raise ValueError("n must not be negative")
        if self.max_requests is not None and self.max_requests < 0:
            raise ValueError("max_requests must not be negative")
        if self.capacity is not None and self.capacity < 1:
            raise ValueError("a replica must have room for at least 1 key")
        if self.max_rate is not None:
            try:
                rate = parse_rate(self.max_rate)
            except ValueError as reason:
                raise ValueError(f"max_rate={self.max_rate!r}: {reason}") from None
            if rate.most < 1:
                raise ValueError("a service must be able to get at least 1 request")
        for name, parse in (("service_budget", parse_rate), ("weight", parse_weight)):
            texts = getattr(self, name)
            if isinstance(texts, str):
                raise TypeError(f"{name}={texts!r}: it must be a list, such as [{texts!r}]")
            for text in texts:
                _named_value(name, text, parse)

    @property
    def most_keys(self) -> int | None:
        """The budget as a number of keys; None if it is a duration."""
        return self.budget if isinstance(self.budget, int) else None

    @property
    def budget_ms(self) -> int | None:
        """The budget as a duration in milliseconds; None if it is a number of keys."""
        return parse_duration(self.budget) if isinstance(self.budget, str) else None

    def service_budgets(self) -> dict[str, Rate]:
        """Return the budget of each service, by its name as the user writes it."""
        return _named_values("service_budget", self.service_budget, parse_rate)

    def weights(self) -> dict[str, float]:
        """Return the weight of each query, by its name as the user writes it."""
        return _named_values("weight", self.weight, parse_weight)


def parse_weight(text: str) -> float:
    """Return a weight, a number above 0; raise `ValueError` if it is not one.

    >>> parse_weight("2.5")
    2.5
    """
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight < inf:
        raise ValueError("a weight is a number above 0")
    return weight


_Value = TypeVar("_Value")


def _named_value(option: str, text: str, parse: Callable[[str], _Value]) -> tuple[str, _Value]:
    """Return the name and the value of `NAME=VALUE`; the name may have an equals sign."""
    name, equals, value = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"{option}={text!r}: it must be NAME=VALUE")
    try:
        return name, parse(value)
    except ValueError as reason:
        raise ValueError(f"{option}={text!r}: {reason}") from None


def _named_values(
    option: str, texts: Sequence[str], parse: Callable[[str], _Value]
) -> dict[str, _Value]:
    return dict(_named_value(option, text, parse) for text in texts)


@dataclass(frozen=True, kw_only=True)
class RunOptions(Options):
    """The options of a run: its driver, its checkpoint and its speed."""

    title: ClassVar[str] = "Run"

    runner: RunnerName = option(
        "auto",
        "Where to run the queries: in this process alone (local), or on Spark, which needs Java."
        " With auto, on Spark if a master is named, a checkpoint of Spark exists, or the input"
        " files have more than 200 MB together.",
    )
    master: str | None = option(
        None, "The Spark master: local[N], or a cluster.", metavar="URL", unset="local[*]"
    )
    checkpoint: str | Path | None = option(
        None,
        "The folder of the checkpoint: a run that broke off resumes from it.",
        metavar="FOLDER",
        unset="no checkpoint",
    )
    conf: Sequence[str] = option(
        (),
        "A setting of Spark, which overrides the defaults, such as spark.executor.memory=4g.",
        metavar="KEY=VALUE",
    )
    split_bytes: int = option(
        4 << 20,
        "The approximate size of a split, which one task reads; at most 2 MB on the local runner.",
        unit="bytes",
        minimum=1,
    )
    speed: float | None = option(
        None,
        "Replay by event time, this many times faster: 1 is the original speed.",
        unit="factor",
        unset="as fast as possible",
        minimum=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.conf, str):
            raise TypeError(f"conf={self.conf!r}: it must be a list of settings, KEY=VALUE")
        for setting in self.conf:
            if not re.fullmatch(r"spark\.[\w.-]+=.*", setting, re.DOTALL):
                raise ValueError(
                    f"conf={setting!r}: it must be KEY=VALUE, and the key must begin with spark."
                )


@dataclass(frozen=True, kw_only=True)
class EngineOptions(RunOptions, ServiceOptions, RankingOptions, WindowOptions):
    """All options of an engine: the keywords of `Engine`."""

    dead_letter: Callable[[DeadLetter], None] | None = option(
        None, "Called with each malformed or late element.", unset="these are only counted"
    )
    prefixes: Mapping[str, str] | None = option(
        None,
        "The prefixes of names such as ex:s, which override those of the registered queries.",
        unset="there are no others",
    )
