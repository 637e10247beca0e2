"""The claims of AcquaTop about its policies, checked against the measured results.

A claim is about the settings of an experiment, and is checked at each of them by medians over the
datasets. A policy leads where no rival is ahead by more than half a percent of the windows, which
is less than the difference between datasets of one kind. Rivals are the policies that keep to the
budget.

(Table 7, and the text of sections 6.3 to 6.7.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from rsp_engine.experiments.report.measured import BOTH, SYMBOLS, Measured, Point

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.experiments.report.measured import Measure
    from rsp_engine.experiments.suite import Parameter

__all__ = [
    "CLAIMS",
    "MARGIN",
    "Claim",
    "ClaimCheck",
    "ClaimOutcome",
    "ClaimVerdict",
    "judge_claim",
    "leaders",
    "verdicts",
    "where",
]

MARGIN = 0.005
"""A lead of less than this part of the windows does not count."""
_FLAT = 0.05
"""A line that changes by less than this part of the windows is flat."""

PROPOSED = ("AT-TSM", "AT-BSM")
STATE_OF_THE_ART = ("WSJ-LRU", "WSJ-WBM")
UPPER, LOWER = "AT-ASM", "WST"

_MEASURE_NAMES: Mapping[Measure, str] = {"ndcg": "nDCG", "precision": "precision"}

ClaimOutcome = Literal["confirmed", "in part", "differs"]
"""A claim holds at all settings, at half of them or more, or at fewer."""


class ClaimCheck(NamedTuple):
    """Whether a claim holds at a point, or for a line of a figure.

    `where` names the place and `detail` the numbers; `rival` is the policy that contradicts it.
    """

    where: str
    holds: bool
    detail: str
    rival: str | None = None
    point: Point | None = None


Test = Callable[[Measured], "Iterator[ClaimCheck]"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper.

    `varied` is the parameter that its experiment varies, None for all experiments; `needs` are the
    policies that a grid must have to check it.
    """

    name: str
    text: str
    section: str
    varied: Parameter | None
    needs: tuple[str, ...]
    test: Test


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The checks of a claim in a grid."""

    claim: Claim
    measured: Measured
    checks: tuple[ClaimCheck, ...]

    @property
    def outcome(self) -> ClaimOutcome:
        """The verdict in words, by the share of the settings at which the claim holds."""
        holding = sum(check.holds for check in self.checks)
        if holding == len(self.checks):
            return "confirmed"
        return "in part" if 2 * holding >= len(self.checks) else "differs"

    @property
    def tally(self) -> str:
        """The number of settings at which the claim holds, as in `5 of 7`."""
        return f"{sum(check.holds for check in self.checks)} of {len(self.checks)}"

    @property
    def against(self) -> tuple[ClaimCheck, ...]:
        """The checks that fail."""
        return tuple(check for check in self.checks if not check.holds)


def leaders(grid: Measured, point: Point, measure: Measure) -> list[str]:
    """Return the policies that lead at a point, best first, among those that keep to the budget."""
    values = {name: grid.median(name, point, measure).value for name in _rivals(grid)}
    best = max(values.values(), default=0.0)
    leading = [name for name in values if values[name] >= best - MARGIN * grid.windows]
    return sorted(leading, key=lambda name: -values[name])


def _rivals(grid: Measured) -> tuple[str, ...]:
    return tuple(name for name in grid.policies if name not in {UPPER, "EXACT"})


def where(grid: Measured, point: Point) -> str:
    """Return the parameters of a point that vary in the grid, as in `B 7, K 5`."""
    points = grid.points
    several = [name for name in Point._fields if len({getattr(p, name) for p in points}) > 1]
    return ", ".join(f"{SYMBOLS[name]} {getattr(point, name)}" for name in several or [grid.varied])


def _leads(policy: str, measure: Measure, at: Callable[[Point], bool]) -> Test:
    """Return a test that a policy leads at the points that `at` selects."""

    def test(grid: Measured) -> Iterator[ClaimCheck]:
        for point in filter(at, grid.points):
            values = {name: grid.median(name, point, measure).value for name in _rivals(grid)}
            best = max(values, key=lambda name: values[name])
            holds = values[policy] >= values[best] - MARGIN * grid.windows
            detail = f"{policy} {values[policy]:.1f}, {best} {values[best]:.1f}"
            yield ClaimCheck(where(grid, point), holds, detail, None if holds else best, point)

    return test


def _comparable(measure: Measure, at: Callable[[Point], bool]) -> Test:
    """Return a test that a proposed policy is at least as good as the earlier ones."""

    def test(grid: Measured) -> Iterator[ClaimCheck]:
        for point in filter(at, grid.points):
            values = {p: grid.median(p, point, measure).value for p in grid.policies}
            ours = max(PROPOSED, key=lambda name: values[name])
            theirs = max(STATE_OF_THE_ART, key=lambda name: values[name])
            holds = values[ours] >= values[theirs] - MARGIN * grid.windows
            detail = f"{ours} {values[ours]:.1f}, {theirs} {values[theirs]:.1f}"
            yield ClaimCheck(where(grid, point), holds, detail, None if holds else theirs, point)

    return test


def _bound(policy: str, sign: int) -> Test:
    """Return a test that no policy is above (sign 1) or below (-1) a bound, in both measures."""

    def test(grid: Measured) -> Iterator[ClaimCheck]:
        for point in grid.points:
            for measure in BOTH:
                values = {p: grid.median(p, point, measure).value for p in grid.policies}
                beyond = max(values, key=lambda name: sign * values[name])
                gap = sign * (values[beyond] - values[policy])
                holds = gap <= MARGIN * grid.windows
                detail = f"{policy} {values[policy]:.1f}, {beyond} {values[beyond]:.1f}"
                yield ClaimCheck(
                    f"{where(grid, point)}, {_MEASURE_NAMES[measure]}", holds, detail, beyond, point
                )

    return test


def _flat(policy: str, along: Parameter, most: float) -> Test:
    """Return a test that the medians along a line differ by at most a part of the windows."""

    def test(grid: Measured) -> Iterator[ClaimCheck]:
        for line in _lines(grid.points, along):
            for measure in BOTH:
                values = [grid.median(policy, point, measure).value for point in line]
                low, high = min(values), max(values)
                detail = f"{policy} from {low:.1f} to {high:.1f}"
                yield ClaimCheck(_MEASURE_NAMES[measure], high - low <= most * grid.windows, detail)

    return test


def _rises(policy: str, along: Parameter) -> Test:
    """Return a test that a line of a figure never falls, and ends higher than it begins."""

    def test(grid: Measured) -> Iterator[ClaimCheck]:
        for line in _lines(grid.points, along):
            for measure in BOTH:
                values = [grid.median(policy, point, measure).value for point in line]
                margin = MARGIN * grid.windows
                rises = all(b >= a - margin for a, b in pairwise(values))
                detail = f"{policy} " + ", ".join(f"{value:.1f}" for value in values)
                yield ClaimCheck(_MEASURE_NAMES[measure], rises and values[-1] > values[0], detail)

    return test


def _lines(points: Sequence[Point], along: Parameter) -> Iterator[list[Point]]:
    """Yield the groups of points that differ in one parameter alone, in its order."""
    others = sorted({point._replace(**{along: 0}) for point in points})
    for other in others:
        yield sorted(point for point in points if point._replace(**{along: 0}) == other)


def _everywhere(_: Point) -> bool:
    return True


def _enough(point: Point) -> bool:
    """Return whether N is at least CH: Hp.4 is worded so, Table 7 is not."""
    return point.n >= point.ch


def _proposed(
    number: int, varied: Parameter, at: Callable[[Point], bool] = _everywhere, condition: str = ""
) -> tuple[Claim, Claim]:
    """Return a hypothesis in the wording of the paper, for both measures."""
    text = "AT-TSM or AT-BSM is as good as WSJ-LRU and WSJ-WBM, or better, in {}{}"
    needs = (*PROPOSED, *STATE_OF_THE_ART)
    name = f"Hp.{number}"
    return (
        Claim(name, text.format("nDCG", condition), "6.3", varied, needs, _comparable("ndcg", at)),
        Claim(
            *(name, text.format("precision", condition), "6.3", varied, needs),
            _comparable("precision", at),
        ),
    )


def _table_7(  # noqa: PLR0913, PLR0917 - the columns of a table
    number: int,
    varied: Parameter,
    measure: Measure,
    policy: str,
    at: Callable[[Point], bool],
    condition: str,
) -> Claim:
    """Return a cell of Table 7: the policy that leads in a measure."""
    text = f"{policy} leads in {_MEASURE_NAMES[measure]} {condition}"
    test = _leads(policy, measure, at)
    return Claim(f"Hp.{number}", text, "Table 7", varied, (policy,), test)


CLAIMS: tuple[Claim, ...] = (
    *_proposed(1, "budget"),
    _table_7(1, "budget", "ndcg", "AT-TSM", lambda p: p.budget > 3, "for B > 3"),
    _table_7(1, "budget", "precision", "AT-BSM", _everywhere, "for every B"),
    *_proposed(2, "ch"),
    _table_7(2, "ch", "ndcg", "AT-TSM", _everywhere, "for every CH"),
    _table_7(2, "ch", "precision", "AT-BSM", _everywhere, "for every CH"),
    *_proposed(3, "k"),
    _table_7(3, "k", "ndcg", "AT-TSM", _everywhere, "for every K"),
    _table_7(3, "k", "precision", "AT-BSM", lambda p: p.k < 7, "for K < 7"),
    _table_7(3, "k", "precision", "WSJ-LRU", lambda p: p.k >= 10, "for K ≥ 10"),
    *_proposed(4, "n", _enough, ", for N ≥ CH"),
    _table_7(4, "n", "ndcg", "AT-TSM", _everywhere, "for every N"),
    _table_7(4, "n", "precision", "AT-BSM", _everywhere, "for every N"),
    Claim("Bounds", "AT-ASM is never behind", "6.3", None, (UPPER,), _bound(UPPER, 1)),
    Claim("Bounds", "WST is never ahead", "6.3", None, (LOWER,), _bound(LOWER, -1)),
    Claim("Shapes", "WST is flat in B", "6.4", "budget", (LOWER,), _flat(LOWER, "budget", 0)),
    Claim("Shapes", "AT-TSM is flat in CH", "6.5", "ch", ("AT-TSM",), _flat("AT-TSM", "ch", _FLAT)),
    Claim("Shapes", "AT-ASM rises with N", "6.7", "n", (UPPER,), _rises(UPPER, "n")),
)


def judge_claim(claim: Claim, grid: Measured) -> ClaimVerdict | None:
    """Return the verdict on a claim, None where the grid does not have what it is about."""
    has_points = len(grid.points) > 1
    if claim.varied is not None and (claim.varied != grid.varied or not has_points):
        return None
    if not {*claim.needs} <= {*grid.policies}:
        return None
    checks = tuple(claim.test(grid))
    return ClaimVerdict(claim, grid, checks) if checks else None


def verdicts(grids: Iterable[Measured]) -> list[ClaimVerdict]:
    """Return the verdicts on all claims, in the order of the claims."""
    all_grids = list(grids)
    judged = (judge_claim(claim, grid) for claim in CLAIMS for grid in all_grids)
    return [verdict for verdict in judged if verdict is not None]
