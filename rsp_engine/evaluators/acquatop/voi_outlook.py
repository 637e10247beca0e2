"""The outlook of a ranked query: what its objects may score, for a policy that learns.

The planner gives F as a function of the remote value; here it is evaluated on the grid of values
that the learner has, for each object of the list with what it streamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.candidates import Candidates
from rsp_engine.policies.voi import Learner

if TYPE_CHECKING:
    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.acquatop.ranked_objects import RankedObjects
    from rsp_engine.evaluators.acquatop.remote_values import RemoteValues
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.policies.voi import Voi

__all__ = ["VoiOutlook"]


class VoiOutlook:
    """Learns from what is fetched for a query. Each object has a key of its own."""

    def __init__(
        self, policy: Voi, config: AcquaTopConfig, objects: RankedObjects, values: RemoteValues
    ) -> None:
        self._policy = policy
        self._config = config
        self._objects = objects
        self._values = values
        self._learner = Learner()
        self._window, self._step = 0, 1

    def begin(self, window: int, step: int) -> None:
        """Look at a window, all panes of which were taken."""
        self._window, self._step = window, step
        present = self._objects.join_keys()
        self._learner.begin(present, self._values.of(present))

    def told(self, keys: Integers, changed: Booleans) -> None:
        """Learn which keys have changed since their last refresh, and which have not."""
        self._learner.told(keys, changed)

    def fetched(self, keys: Integers, changed: Integers) -> None:
        """Learn from keys that were fetched, and move the objects of those that changed."""
        self._values.renew(changed)
        self._objects.change(changed)
        self._learner.fetched(keys, self._values.of(keys))

    def candidates(self) -> Candidates:
        """Return the objects of the list as they are now, with their outlook."""
        objects = self._objects
        numbers, scores, ends = objects.keys, objects.scores, objects.ends
        keys = objects.keys_of(numbers.tolist())
        streaming, positions = objects.streamed(numbers)
        precedence = np.empty(len(numbers), dtype=np.int64)
        precedence[np.lexsort((numbers, positions))] = np.arange(len(numbers))

        def scored(levels: Floats) -> Floats:
            each = np.repeat(streaming, len(levels))
            found = self._config.scores(each, np.tile(levels, len(streaming)))
            return found.reshape(len(streaming), len(levels))

        outlook = self._learner.outlook(keys, scores, precedence, scored)
        lives = ends - self._window + 1
        return Candidates(keys, scores, lives, self._config.k, self._step, outlook)

    def best(self) -> tuple[Integers, Floats]:
        """Return the objects of the answer in its order, with the scores that are known of them."""
        places = self._policy.best(self.candidates())
        return self._objects.keys[places], self._objects.scores[places]

    def forget(self, keys: Integers) -> None:
        """Forget what was seen of join keys whose numbers go to others."""
        self._learner.forget(keys)

    def state(self) -> StateData:
        """Return what was learned, as plain data."""
        return self._learner.state()

    def restore(self, state: StateData) -> None:
        """Go on from a state."""
        self._learner.restore(state)
