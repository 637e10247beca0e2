"""A score of your own tells which posts are hot right now.

Likes count for less the older a post is, which no SPARQL expression says as shortly as Python. The
function is registered under a name, and the query calls it. It says that it rises with the likes
and falls with the age, which `explain` tells and operators may rely on.
"""

from __future__ import annotations

import math

from rsp_engine import Engine
from rsp_engine.model.answers import Solutions

POSTS = [
    (10, "cat", 900, 30),
    (20, "dog", 300, 2),
    (30, "owl", 40, 0),
    (70, "emu", 700, 9),
    (80, "dog", 800, 3),
]
"""A second, a post, its likes so far, its age in hours."""


def hotness(likes: float, hours: float) -> float:
    """Return how hot a post is: its likes, less for every hour."""
    return round(likes / math.pow(hours + 2, 1.5), 1)


engine = Engine(match="element")  # likes and age of a post come together
engine.function("hotness", hotness, monotone=("rises", "falls"))
engine.register("""
    PREFIX : <http://example.org/>
    REGISTER RSTREAM :hot AS
    SELECT ?post ?likes (hotness(?likes, ?hours) AS ?heat)
    FROM NAMED WINDOW :w ON STREAM :posts [RANGE 1m STEP 30s]
    WHERE { WINDOW :w { ?post :likes ?likes ; :hours ?hours } }
    ORDER BY DESC(?heat) LIMIT 2
""")
post = "@prefix : <http://example.org/> . :{} :likes {} ; :hours {} ."
engine.bind(
    "http://example.org/posts",
    [(second * 1000, post.format(name, likes, age)) for second, name, likes, age in POSTS],
)
for answer in engine.run():
    rows = answer.content.rows if isinstance(answer.content, Solutions) else ()
    for row in rows:
        name, likes = (row.bindings[v].value.split("/")[-1] for v in ("post", "likes"))
        told = f"{row.rank}. {name:4} {likes:>4} likes  {row.score:6.1f}"
        print(f"{answer.window.close // 1000:4} s  {told}")
