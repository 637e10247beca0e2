"""Reasons why a claim fails: an ordered list of rules, of which the first that applies counts.

The rules were written after the results were seen. Those that begin with "Likely" are a reading of
the figures and were not tested by a separate run; the others follow from the definition of the
policies, or from the numbers beside them. Where no rule applies, the report says that the cause is
not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.experiments.report.claims import UPPER

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.experiments.report.claims import ClaimVerdict
    from rsp_engine.experiments.report.measured import Measured, Point

__all__ = ["UNKNOWN", "reasons"]

UNKNOWN = "The cause is not known."

_LRU = ("WSJ-LRU", "AT-LRU")
_WBM = ("WSJ-WBM", "AT-WBM")


def reasons(verdict: ClaimVerdict) -> dict[str, list[str]]:
    """Return the reasons for the failed checks, each with their places and numbers."""
    places: dict[str, list[str]] = {}
    for check in verdict.against:
        reason, size = UNKNOWN, ""
        if check.point is not None and check.rival is not None:
            rules = (rule(verdict, check.point, check.rival) for rule in RULES)
            reason = next((one for one in rules if one is not None), UNKNOWN)
            objects = _list_size(verdict.measured, check.point)
            size = "" if objects is None else f" (the list: {objects:.1f} objects)"
        places.setdefault(reason, []).append(f"{check.where}: {check.detail}{size}")
    return places


def _small_n(v: ClaimVerdict, point: Point, _rival: str) -> str | None:
    if v.measured.varied != "n" or point.n >= point.ch:
        return None
    return (
        "N is smaller than CH: the list holds few objects, and what is not in it is never fetched. "
        "Section 6.7 calls small N extreme, and Hp.4 leaves them out."
    )


def _budget_beyond_list(v: ClaimVerdict, point: Point, rival: str) -> str | None:
    size = _list_size(v.measured, point)
    if not rival.startswith("WSJ") or size is None or point.budget < size:
        return None
    return (
        "The budget is larger than the list: whoever looks at the whole window fetches what is "
        "outside of the list as well, and AT policies cannot. The paper takes the list to have "
        "2(K+N) = 30 objects, as many as the window; of two windows that overlap by 40 s it has "
        "about 21."
    )


def _both_elect_the_top(v: ClaimVerdict, point: Point, rival: str) -> str | None:
    if "precision" not in v.claim.text or point.budget < 2 * point.k or rival not in _LRU:
        return None
    return (
        "From B = 2K on, the places around the border reach up to the first: AT-BSM elects the "
        "first B of the list, as AT-TSM does, and keys below are not fetched. Likely, LRU is "
        "ahead because it goes round them all, and comes round soon with such a budget."
    )


def _large_k(v: ClaimVerdict, point: Point, rival: str) -> str | None:
    if "precision" not in v.claim.text or point.k < 7 or rival not in (*_LRU, *_WBM):
        return None
    if v.claim.needs == ("WSJ-LRU",):
        return None
    return (
        "AT-TSM and AT-BSM fetch keys that rank high in the replica; one that ranks too low by an "
        "old value is not fetched, and is missing. That costs little among the users with mn = 2, "
        "about 6 in a window, who rank before all others. A larger answer has users with mn = 1 as "
        "well, whom dfc alone orders. This is what section 6.6 observes."
    )


def _list_or_window(v: ClaimVerdict, _point: Point, rival: str) -> str | None:
    if v.claim.needs != ("WSJ-LRU",) or rival != "AT-LRU":
        return None
    return (
        "AT-LRU does the same within the list. Likely, it wastes less on users who cannot reach an "
        "answer. Section 6.6 names both as the best; Table 7 names WSJ-LRU."
    )


def _most_values_stale(v: ClaimVerdict, point: Point, _rival: str) -> str | None:
    if v.claim.needs != ("AT-BSM",) or point.ch < 40:
        return None
    return (
        "Likely: nearly every value changes between two windows, so the order below the first "
        "places is mostly chance, and so is the set at the border. Section 6.5 sees AT-BSM fall "
        "for high CH, too."
    )


def _few_changes(v: ClaimVerdict, point: Point, rival: str) -> str | None:
    if v.measured.varied != "ch" or point.ch > 5 or rival not in (*_LRU, *_WBM):
        return None
    return "Likely: so few values change that going round all of them keeps nearly all fresh."


def _every_mention(v: ClaimVerdict, _point: Point, _rival: str) -> str | None:
    if v.measured.results.manifest["data"]["counting"] != "mentions":
        return None
    return (
        "Every mention is counted here, and one more weighs less than dfc can: a change of dfc "
        "can move a user past others with more mentions. With mn = 1 or 2 it cannot. Likely, that "
        "is why fetching the top or the border alone finds fewer of the changes that matter."
    )


def _other_proposed_policy(_v: ClaimVerdict, _point: Point, rival: str) -> str | None:
    if rival not in ("AT-TSM", "AT-BSM"):
        return None
    return "The other policy that the paper proposes is ahead."


def _little_budget(_v: ClaimVerdict, point: Point, rival: str) -> str | None:
    if point.budget >= point.k or rival not in (*_LRU, *_WBM, "WSJ-RND"):
        return None
    return (
        "Likely: the budget does not reach for the answer, the same few keys at the top are "
        "fetched each time, and the rest is not (section 6.4 calls B = 1 extreme)."
    )


RULES: tuple[Callable[[ClaimVerdict, Point, str], str | None], ...] = (
    _small_n,
    _budget_beyond_list,
    _every_mention,
    _list_or_window,
    _large_k,
    _both_elect_the_top,
    _most_values_stale,
    _few_changes,
    _other_proposed_policy,
    _little_budget,
)


def _list_size(grid: Measured, point: Point) -> float | None:
    """Return the average size of the list, which is what AT-ASM fetches; None without AT-ASM."""
    return grid.fetched(UPPER, point) if UPPER in grid.policies else None
