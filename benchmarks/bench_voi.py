"""AT-VOI: time per evaluation, against the formulas evaluated pair by pair.

An evaluation has all steps of the policy: it begins, computes the outlook and the refresh value of
all candidates twice, learns from two batches of fetched values, and ranks the answer. All remote
values differ, so that F has the maximum number of levels. The baseline computes pi and g of each
object against every other one, which the policy replaces by one pass over all scores; the baseline
is vectorised over the scores.
"""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.candidates import Candidates, Entries
from rsp_engine.policies.voi import AT_VOI, Learner
from rsp_engine.policies.voi.rank_distribution import rank_distribution

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.candidates import Outlook

K, BUDGET, EVALUATIONS = 10, 7, 40
MOST = {32: 10.0, 300: 100.0}
"""The bars: milliseconds per evaluation, by the number of candidates."""


def milliseconds(act: Callable[[], object]) -> float:
    """Return the CPU time of a call."""
    begin = time.process_time()  # wall time would include other load on the machine
    act()
    return (time.process_time() - begin) * 1000


class Run:
    """Evaluations of a window that always has the same objects."""

    def __init__(self, count: int) -> None:
        self.chance = np.random.default_rng(count)
        self.keys = np.arange(count)
        self.streamed = self.chance.integers(1, 3, count).astype(np.float64)
        self.values = self.chance.normal(size=count)
        self.learner = Learner()
        self.entries = Entries(self.keys, self.keys, self.keys, self.keys + 1)

    def score(self, values: np.ndarray) -> np.ndarray:
        """Return the scores of each object at its row of remote values."""
        return 0.7 * self.streamed[:, None] + 0.3 * values

    def outlook(self) -> Outlook:
        """Return the distribution of the scores."""
        scores = 0.7 * self.streamed + 0.3 * self.values
        return self.learner.outlook(self.keys, scores, self.keys, self.score)

    def candidates(self) -> Candidates:
        """Return all objects, with their outlook."""
        outlook = self.outlook()
        return Candidates(self.keys, outlook.scores[:, 0], self.keys + 1, K, 1, outlook)

    def evaluate(self) -> None:
        """Run an evaluation; a third of the fetched values have changed."""
        self.learner.begin(self.keys, self.values)
        for budget in (-(-BUDGET // 2), BUDGET // 2):
            fetched = AT_VOI.elect(self.candidates(), self.entries, budget, 0, 0)
            changed = fetched[self.chance.random(len(fetched)) < 1 / 3]
            self.values[changed] = self.chance.normal(size=len(changed))
            self.learner.fetched(fetched, self.values[fetched])
        AT_VOI.best(self.candidates())


def pair_by_pair(outlook: Outlook) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of A and g by the formulas, for each object and score."""
    above, squares = np.zeros_like(outlook.scores), np.zeros_like(outlook.scores)
    product = np.ones_like(outlook.scores)
    for scores, chances, precedence in zip(
        outlook.scores, outlook.chances, outlook.precedence, strict=True
    ):
        wins = (precedence > outlook.precedence)[:, None, None]
        other = (precedence != outlook.precedence)[:, None]
        over = scores > outlook.scores[:, :, None]
        a = np.where(wins, over | (scores == outlook.scores[:, :, None]), over) @ chances * other
        above, squares, product = above + a, squares + a * a, product * (1 - a / 2)
    return above, np.maximum(product - 0.5**K, 0)


def main() -> None:
    """Print the table."""
    print("candidates  levels  evaluation        sums in one pass  pair by pair   ratio")
    for count, most in MOST.items():
        run = Run(count)
        times = [milliseconds(run.evaluate) for _ in range(EVALUATIONS)]
        outlook = run.outlook()
        ours = median(milliseconds(partial(rank_distribution, outlook, K)) for _ in range(9))
        theirs = median(milliseconds(partial(pair_by_pair, outlook)) for _ in range(3))
        assert np.allclose(rank_distribution(outlook, K).g, pair_by_pair(outlook)[1])
        levels, middle = outlook.scores.shape[1] - 1, median(times)
        verdict = f"{middle:6.2f} ms (<= {most:g})"
        print(
            f"{count:10}  {levels:6}  {verdict:<17} {ours:9.2f} ms     {theirs:9.1f} ms"
            f"   {theirs / ours:5.1f}x"
        )


if __name__ == "__main__":
    main()
