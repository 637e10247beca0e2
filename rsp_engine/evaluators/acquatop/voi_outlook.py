"""The outlook of AT-VOI over a ranked query: the possible scores of its objects.

F is evaluated for each object of the list, with its x_S, at the remote values that the learner
predicts for its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.candidates import Candidates
from rsp_engine.policies.voi import Learner

if TYPE_CHECKING:
    from rsp_engine.evaluators.acquatop.plain_scores import PlainScores, RemoteValues
    from rsp_engine.evaluators.acquatop.ranked_objects import RankedObjects
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.policies.voi import Voi

__all__ = ["VoiOutlook"]


class VoiOutlook:
    """Connects the learner with the objects of a query, each of which has its own key."""

    def __init__(
        self,
        policy: Voi,
        k: int,
        objects: RankedObjects,
        values: RemoteValues,
        scores: PlainScores,
    ) -> None:
        self._policy = policy
        self._k = k
        self._objects = objects
        self._values = values
        self._scores = scores
        self._learner = Learner()
        self._window, self._step = 0, 1

    def begin(self, window: int, step: int) -> None:
        """Begin a window, after the last of its panes."""
        self._window, self._step = window, step
        present = self._objects.join_keys()
        self._learner.begin(present, self._values.of(present))

    def learn_signal(self, keys: Integers, changed: Booleans) -> None:
        """Learn from the change signal which keys have changed since their last refresh."""
        self._learner.observe_signal(keys, changed)

    def learn_fetched(self, keys: Integers, changed: Integers) -> None:
        """Learn from fetched keys, and update the objects of the changed ones."""
        self._values.renew(changed)
        self._objects.change(changed)
        self._learner.fetched(keys, self._values.of(keys))

    def candidates(self) -> Candidates:
        """Return the current objects of the list, with their outlook."""
        objects = self._objects
        numbers, scores, ends = objects.keys, objects.scores, objects.ends
        keys = objects.keys_of(numbers.tolist())
        streaming, positions = objects.streamed(numbers)
        precedence = np.empty(len(numbers), dtype=np.int64)
        precedence[np.lexsort((numbers, positions))] = np.arange(len(numbers))

        def scored(values: Floats) -> Floats:
            repeated = np.repeat(streaming, values.shape[1])
            return self._scores.in_float64(repeated, values.ravel()).reshape(values.shape)

        outlook = self._learner.outlook(keys, scores, precedence, scored)
        lives = ends - self._window + 1
        return Candidates(keys, scores, lives, self._k, self._step, outlook)

    def worth(self) -> tuple[Integers, Floats] | None:
        """Return the keys of the list, and what a refresh of each is worth to the query."""
        candidates = self.candidates()
        values = self._policy.worth(candidates)
        return None if values is None else (candidates.keys, values)

    def best(self) -> tuple[Integers, Floats]:
        """Return the objects of the expected answer, in order, with their scores by the replica."""
        places = self._policy.best(self.candidates())
        return self._objects.keys[places], self._objects.scores[places]

    def belief(self) -> dict[str, Any]:
        """Return what the learner believes of remote values."""
        return self._learner.belief()

    def forget(self, keys: Integers) -> None:
        """Forget join keys whose numbers are reused."""
        self._learner.forget(keys)

    def state(self) -> StateData:
        """Return the state of the learner, as plain data."""
        return self._learner.state()

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        self._learner.restore(state)
