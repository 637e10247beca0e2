"""Suites: TOML files that declare the runs of an experiment.

    title = "Sensitivity to the refresh budget"
    varied = "budget"               # the x axis of the figures

    [data]                          # optional, as is every key in it
    source = "generated"            # or "recorded": the traces in `folder`
    seed = 0
    datasets = 5                    # of each CH
    windows = 150
    counting = "slides"             # or "mentions", "streamed"
    mentions = "shared"             # or "separate": each dataset has a seed of its own
    crowd = 1                       # how many times as many users and mentions as in the paper

    [[grid]]                        # one run for each combination of the values
    name = "Table 5"
    policies = ["AT-TSM", "WSJ-LRU"]    # by default, the nine of the paper
    families = ["walks", "bursts"]  # optional: a grid for each family of datasets
    ch = [10]
    budget = [1, 7, 15]
    k = [5]
    n = [10]
    queries = [20]                  # optional: sets of queries that share the budget
    quick = { budget = [7] }        # with --quick, these values instead

    [[comparison]]                  # optional: which policies `rsp experiment trials` compares
    name = "the paper's"
    challengers = ["AT-VOI"]        # each is compared with ...
    baselines = ["AT-TSM", "WSJ-LRU"]   # ... the best of these

    [quick]                         # with --quick, these keys of the data instead
    datasets = 3

`counting` defines mn. `slides`: the number of parts of the window in which a user is mentioned,
which is what the program of AcquaTop counts. `mentions`: the number of mentions. `streamed`: the
stream carries the number of mentions as a value, and Topk+N maintains the list.

An unknown key is refused, with its place. (AcquaTop, section 6, Tables 4 and 5.)
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from math import prod
from typing import TYPE_CHECKING, Any, Literal, get_args

from rsp_engine.errors import BindingError, SuiteError
from rsp_engine.experiments.clairvoyant import CLAIRVOYANT
from rsp_engine.experiments.datasets.dataset import EVALUATIONS
from rsp_engine.experiments.datasets.families import FAMILIES, Family
from rsp_engine.experiments.datasets.profile import CHS, DATASETS
from rsp_engine.experiments.policy_run import split_ways, variant
from rsp_engine.experiments.query_sets import MOST_QUERIES
from rsp_engine.policies import POLICIES, is_policy_file, split_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rsp_engine.experiments.datasets.own import OwnTables

__all__ = [
    "NINE",
    "PARAMETERS",
    "Data",
    "DataSource",
    "MentionCounting",
    "MentionSharing",
    "Parameter",
    "ParameterGrid",
    "PolicyComparison",
    "Suite",
    "read_suite",
    "with_files",
]

DataSource = Literal["generated", "recorded", "replay", "own"]
MentionCounting = Literal["slides", "mentions", "streamed"]
MentionSharing = Literal["shared", "separate"]
"""Whether the datasets of a suite have the same mentions, as those of the paper."""
Parameter = Literal["ch", "budget", "k", "n", "queries"]
PARAMETERS: tuple[Parameter, ...] = get_args(Parameter)

NINE = tuple(
    name
    for name, policy in POLICIES.items()
    if policy.section.startswith("AcquaTop") and name not in {"AT-RND", "EXACT"}
)
"""The policies that the paper compares."""

_MOST = 2**31 - 1
_RANGES = {
    "ch": (1, max(CHS)),
    "budget": (0, _MOST),
    "k": (1, _MOST),
    "n": (0, _MOST),
    "queries": (1, MOST_QUERIES),
}


@dataclass(frozen=True, slots=True)
class Data:
    """The datasets of a suite.

    `folder` is that of recorded traces, `replay` the file of a recorded run, and `own` names the
    tables of a user; each is None for data of another source.
    """

    source: DataSource = "generated"
    folder: str | None = None
    seed: int = 0
    datasets: int = DATASETS
    windows: int = EVALUATIONS
    counting: MentionCounting = "slides"
    mentions: MentionSharing = "shared"
    crowd: int = 1
    replay: str | None = None
    own: OwnTables | None = None


@dataclass(frozen=True, slots=True)
class ParameterGrid:
    """One run for each dataset of a family and each combination of the values."""

    name: str
    policies: tuple[str, ...]
    ch: tuple[int, ...]
    budget: tuple[int, ...]
    k: tuple[int, ...]
    n: tuple[int, ...]
    family: Family = "paper"
    queries: tuple[int, ...] = (0,)
    """The sizes of sets of queries; 0: one query over all users, with a budget of its own."""

    @property
    def slug(self) -> str:
        """The name as part of a file name.

        >>> ParameterGrid("Table 5", NINE, (20,), (7,), (5,), (10,)).slug
        'table-5'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "grid"


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """Policies to compare: each challenger with the best of the baselines.

    Names are without the ways of a run: a comparison is made among the runs with `+signal`, and
    among those without.
    """

    name: str
    challengers: tuple[str, ...]
    baselines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite to run; the values of --quick are already in place."""

    name: str
    title: str
    varied: Parameter
    data: Data
    grids: tuple[ParameterGrid, ...]
    section: str = ""
    is_quick: bool = False
    comparisons: tuple[PolicyComparison, ...] = ()

    @property
    def runs(self) -> int:
        """The number of runs."""
        sizes = (
            len(g.policies) * prod(len(getattr(g, name)) for name in PARAMETERS) for g in self.grids
        )
        return self.data.datasets * sum(sizes)


def read_suite(path: Path, *, quick: bool = False) -> Suite:
    """Read a suite; raise a `SuiteError` that names the key at fault."""
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise SuiteError(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SuiteError(f"{path} is no TOML file: {error}") from None
    top = _Table(str(path), content)
    top.only("title", "section", "varied", "data", "grid", "comparison", "quick")
    data = _data(top.table("data"), Data())
    quick_data = top.table("quick")
    quick_data.only("datasets", "windows")
    grids = [grid for one in top.tables("grid") for grid in _grids(one, quick=quick)]
    if any(grid.family == "churn" for grid in grids) and data.source == "recorded":
        raise top.wrong("grid", "the family churn needs generated mentions")
    comparisons = top.tables("comparison") if "comparison" in content else []
    for name in (name for grid in grids for name in grid.policies):
        if "list" in split_ways(name)[1] and data.counting != "streamed":
            problem = f"{name} needs a list that is maintained, but groups rebuild theirs"
            raise SuiteError(f"{path}: grid: {problem}", 'write counting = "streamed" in [data]')
    if len({grid.slug for grid in grids}) < len(grids):
        raise SuiteError(f"{path}: grid: two grids have the same name")
    return Suite(
        path.stem,
        top.text("title"),
        top.one_of("varied", PARAMETERS),
        _data(quick_data, data) if quick else data,
        tuple(grids),
        top.text("section", ""),
        is_quick=quick,
        comparisons=tuple(_comparison(one, grids) for one in comparisons),
    )


def with_files(suite: Suite, data: Data, windows: int) -> Suite:
    """Return a suite over data of files, which have so many windows.

    Families and CH belong to generated values, so grids that differ in these alone become one. A
    dataset is a stretch of `data.windows` windows; there are as many as fit, at most as many as
    the suite asks for.
    """
    one = min(suite.data.windows, windows)
    datasets = 1 if data.source == "replay" else min(suite.data.datasets, max(windows // one, 1))
    data = replace(data, seed=suite.data.seed, datasets=datasets, windows=one)
    grids = {replace(g, name="", ch=(0,), family="paper"): g.name for g in suite.grids}
    named = [
        replace(grid, name=f"{data.source}, {number}" if len(grids) > 1 else data.source)
        for number, grid in enumerate(grids, 1)
    ]
    return replace(suite, data=data, grids=tuple(named))


def _data(table: _Table, default: Data) -> Data:
    table.only(*(field.name for field in fields(Data) if field.name not in {"replay", "own"}))
    data = replace(
        default,
        source=table.one_of("source", ("generated", "recorded"), default.source),
        folder=table.text("folder", default.folder or "") or None,
        seed=table.number("seed", 0, _MOST, default.seed),
        datasets=table.number("datasets", 1, 1000, default.datasets),
        windows=table.number("windows", 1, EVALUATIONS, default.windows),
        counting=table.one_of("counting", get_args(MentionCounting), default.counting),
        mentions=table.one_of("mentions", get_args(MentionSharing), default.mentions),
        crowd=table.number("crowd", 1, 100, default.crowd),
    )
    if data.crowd > 1 and data.source != "generated":
        raise table.wrong("crowd", "recorded data have the users they have")
    if data.mentions == "separate" and data.source != "generated":
        raise table.wrong("mentions", "recorded mentions are shared by all datasets")
    if (data.source == "recorded") != (data.folder is not None):
        problem = (
            "recorded traces have a folder" if data.folder is None else "it is for recorded data"
        )
        raise table.wrong("folder", problem, 'source = "recorded" and folder = "..." go together')
    return data


def _grids(table: _Table, *, quick: bool) -> list[ParameterGrid]:
    """Return the grid of a table, or one for each of its families."""
    table.only("name", "policies", "families", "quick", *PARAMETERS)
    quick_table = table.table("quick")
    quick_table.only("policies", "families", *PARAMETERS)

    def table_of(key: str) -> _Table:
        return quick_table if quick and key in quick_table.content else table

    ch, budget, k, n, queries = (
        table_of(name).numbers(name, *_RANGES[name])
        if name != "queries" or name in table_of(name).content
        else (0,)
        for name in PARAMETERS
    )
    policies = _policies(table_of("policies"))
    _check_set(table, policies, is_set=queries != (0,))
    grid = ParameterGrid(table.text("name"), policies, ch, budget, k, n, queries=queries)
    if "families" not in table_of("families").content:
        return [grid]
    families = table_of("families").names("families", FAMILIES)
    return [replace(grid, name=f"{grid.name}, {family}", family=family) for family in families]


def _check_set(table: _Table, policies: Iterable[str], *, is_set: bool) -> None:
    """Raise if a policy does not fit a set of queries, or is for sets alone."""
    for name in policies:
        if name == CLAIRVOYANT:
            unfit = is_set
        else:
            chosen = variant(name)
            unfit = chosen.is_pushed if is_set else chosen.division is not None
        if unfit:
            problem = "is not for sets of queries" if is_set else "is for sets of queries"
            raise table.wrong("policies", f"{name} {problem}", "sets have the key `queries`")


def _policies(table: _Table) -> tuple[str, ...]:
    names = table.values("policies") if "policies" in table.content else NINE
    for name in names:
        _check_policy(table, "policies", str(name))
    return tuple(str(name) for name in names)


def _check_policy(table: _Table, key: str, name: str) -> None:
    if name == CLAIRVOYANT:
        return
    known = split_parameters(name)[0]
    if known not in POLICIES and not is_policy_file(known):
        raise table.wrong(key, f"there is no policy {name!r}", _nearest(name, POLICIES))
    try:
        variant(name)
    except (ValueError, BindingError) as reason:
        raise table.wrong(key, str(reason)) from None


def _comparison(table: _Table, grids: Iterable[ParameterGrid]) -> PolicyComparison:
    """Read a comparison, whose policies must all run in some grid."""
    table.only("name", "challengers", "baselines")
    known = {split_ways(name)[0] for grid in grids for name in grid.policies} - {CLAIRVOYANT}
    found = PolicyComparison(
        table.text("name"),
        table.names("challengers", known),
        table.names("baselines", known),
    )
    if both := {*found.challengers} & {*found.baselines}:
        raise table.wrong("baselines", f"{min(both)} is a challenger")
    return found


class _Table:
    """A TOML table of a suite, with its place for error messages."""

    def __init__(self, place: str, content: Mapping[str, Any]) -> None:
        self.place = place
        self.content = content

    def wrong(self, key: str, problem: str, hint: str | None = None) -> SuiteError:
        return SuiteError(f"{self.place}: {key}: {problem}", hint)

    def only(self, *names: str) -> None:
        for key in self.content:
            if key not in names:
                raise self.wrong(key, "there is no such key", _nearest(key, names))

    def table(self, key: str) -> _Table:
        found = self.content.get(key, {})
        if not isinstance(found, dict):
            raise self.wrong(key, f"must be a table, not {found!r}")
        return _Table(f"{self.place}: {key}", found)

    def tables(self, key: str) -> list[_Table]:
        found = self.content.get(key, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self.wrong(key, "must be tables", f"begin each with [[{key}]]")
        if not found:
            raise self.wrong(key, "there is none, so there is nothing to run")
        return [_Table(f"{self.place}: {key} {i}", one) for i, one in enumerate(found, 1)]

    def text(self, key: str, default: str | None = None) -> str:
        found = self.content.get(key, default)
        if not isinstance(found, str) or (default is None and not found):
            raise self.wrong(key, "must be a text" if key in self.content else "is missing")
        return found

    def one_of(self, key: str, names: tuple[Any, ...], default: str | None = None) -> Any:  # noqa: ANN401 - one of the names
        found = self.content.get(key, default)
        if found not in names:
            problem = f"not {found!r}" if key in self.content else "and is missing"
            raise self.wrong(key, f"must be one of {', '.join(names)}, {problem}")
        return found

    def number(self, key: str, least: int, largest: int, default: int) -> int:
        return self._whole(key, self.content.get(key, default), least, largest)

    def values(self, key: str) -> tuple[Any, ...]:
        if key not in self.content:
            raise self.wrong(key, "is missing")
        found = self.content[key]
        if not isinstance(found, list):
            raise self.wrong(key, f"must be a list, not {found!r}", f"{key} = [...]")
        if not found:
            raise self.wrong(key, "is empty, so there is nothing to run")
        if len(set(map(repr, found))) < len(found):
            raise self.wrong(key, "holds a value twice")
        return tuple(found)

    def names(self, key: str, known: Iterable[str]) -> tuple[Any, ...]:
        """Return a list of texts, each one of those known."""
        found, all_known = self.values(key), sorted(known)
        for name in found:
            if name not in all_known:
                raise self.wrong(key, f"there is no {name!r}", _nearest(name, all_known))
        return found

    def numbers(self, key: str, least: int, largest: int) -> tuple[int, ...]:
        return tuple(self._whole(key, value, least, largest) for value in self.values(key))

    def _whole(self, key: str, value: object, least: int, largest: int) -> int:
        if type(value) is not int or not least <= value <= largest:
            upper = "on" if largest == _MOST else f"to {largest}"
            raise self.wrong(key, f"must be a whole number from {least} {upper}, not {value!r}")
        return value


def _nearest(name: object, names: Iterable[str]) -> str:
    known = list(names)
    near = get_close_matches(str(name), known, 1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
