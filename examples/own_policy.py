"""A policy of your own says whom to ask about, if you may ask about two users a window.

`AT-OLD` elects from the list of Topk+N as the AT policies do, and takes what is both near the top
and old: the age of a value, divided by its place. It runs beside two policies of the engine, over
the same mentions and the same changing followers, and an oracle judges all three.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox

from rsp_engine import Engine
from rsp_engine.policies import RankedPolicy

if TYPE_CHECKING:
    from rsp_engine.model.candidates import Candidates, Entries
    from rsp_engine.policies.policy import CandidatePlaces

USER = "http://example.org/user/"
FOLLOWS = ox.NamedNode("http://example.org/hasFollowers")
QUERY = """
PREFIX : <http://example.org/>
REGISTER RSTREAM :UsersToContact AS
SELECT ?user (?mentions + ?followers AS ?score)
FROM NAMED WINDOW :w ON STREAM :mentions [RANGE 60s STEP 20s]
WHERE {
  WINDOW :w { ?user :hasMentions ?mentions }
  SERVICE :people { ?user :hasFollowers ?followers }
}
ORDER BY DESC(?score) LIMIT 3
"""


def old_at_the_top(
    candidates: Candidates, entries: Entries, now: int, _seed: int
) -> CandidatePlaces:
    """Order the candidates, which come best first, by age over place."""
    places = np.arange(1, len(candidates) + 1)
    return np.argsort(-(now - entries.last_refresh) / places, kind="stable")


AT_OLD = RankedPolicy("AT-OLD", "old values near the top", "this file", "list", old_at_the_top)


def judge(policy: str) -> tuple[float, float]:
    """Return the mean nDCG and precision of ten minutes under a policy."""
    chance = random.Random(3)  # noqa: S311 - the same for each policy
    remote = ox.Store()
    for user in range(20):
        remote.add(ox.Quad(ox.NamedNode(f"{USER}{user}"), FOLLOWS, ox.Literal(user)))
    mentions = [
        (s * 1000, f"<{USER}{chance.randrange(20)}> <http://example.org/hasMentions> {s % 30} .")
        for s in range(1, 601)
    ]
    engine = Engine(policy=policy, budget=2, n=5, oracle=True)
    engine.policy(AT_OLD)
    engine.service("http://example.org/people", remote)
    engine.register(QUERY)
    engine.bind("http://example.org/mentions", mentions)
    measured = []
    for answer in engine.run():
        measured.append((answer.stats["ndcg"], answer.stats["precision"]))
        for user in chance.sample(range(20), 4):  # four users win or lose followers
            node = ox.NamedNode(f"{USER}{user}")
            [quad] = remote.quads_for_pattern(node, FOLLOWS, None, None)
            remote.remove(quad)
            remote.add(ox.Quad(node, FOLLOWS, ox.Literal(chance.randrange(30))))
    ndcg, precision = np.mean(measured, axis=0)
    return float(ndcg), float(precision)


for name in ("WST", "AT-TSM", "AT-OLD"):
    print("{:8} nDCG {:.3f}   precision {:.3f}".format(name, *judge(name)))
