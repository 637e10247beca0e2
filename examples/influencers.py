"""Which users are the best to contact right now? Mentions pass by; followers are elsewhere.

Follower counts stand in a store that plays the remote side. Under a budget of two fetches a window
the policy AT-TSM looks at the top of the list, and the oracle tells how good the answers are.
"""

from __future__ import annotations

import random

import pyoxigraph as ox

from rsp_engine import Engine
from rsp_engine.model.answers import Solutions

USERS = "http://example.org/user/"
QUERY = """
PREFIX : <http://example.org/>
REGISTER STREAM :UsersToContact AS
SELECT ?user (?mentions + ?followers AS ?score)
FROM NAMED WINDOW :w ON STREAM :mentions [RANGE 60s STEP 20s]
WHERE {
  WINDOW :w { ?user :hasMentions ?mentions }
  SERVICE :people { ?user :hasFollowers ?followers }
}
ORDER BY DESC(?score)
LIMIT 3
"""


def main() -> None:
    """Let 20 users be mentioned for five minutes while their followers change."""
    draw = random.Random(7)  # noqa: S311 - the same run every time
    remote = ox.Store()
    follows = ox.NamedNode("http://example.org/hasFollowers")
    for number in range(20):
        remote.add(ox.Quad(ox.NamedNode(f"{USERS}{number}"), follows, ox.Literal(number)))
    mentioned = "<http://example.org/hasMentions>"
    stream = [
        (second * 1000, f"<{USERS}{draw.randrange(20)}> {mentioned} {draw.randrange(30)} .")
        for second in range(1, 301)
    ]
    engine = Engine(policy="AT-TSM", budget=2, n=5, oracle=True)
    engine.service("http://example.org/people", remote)
    engine.register(QUERY)
    engine.bind("http://example.org/mentions", stream)
    for answer in engine.run():
        rows = answer.content.rows if isinstance(answer.content, Solutions) else ()
        best = (f"{row.bindings['user'].value.removeprefix(USERS)} ({row.score:g})" for row in rows)
        told = f"nDCG {answer.stats['ndcg']:.2f}, precision {answer.stats['precision']:.2f}"
        print(f"{answer.window.close // 1000:4} s   {'   '.join(best):40} {told}")
        _change(remote, draw)


def _change(remote: ox.Store, draw: random.Random) -> None:
    """Let five users win or lose followers."""
    for _ in range(5):
        user = ox.NamedNode(f"{USERS}{draw.randrange(20)}")
        [quad] = remote.quads_for_pattern(user, None, None, None)
        remote.remove(quad)
        remote.add(ox.Quad(user, quad.predicate, ox.Literal(draw.randrange(30))))


if __name__ == "__main__":
    main()
