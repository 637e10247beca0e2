"""Read a query, see what it needs, and write it as plain SPARQL.

python examples/inspect_query.py queries/influencers.rspql
"""

from __future__ import annotations

import sys
from pathlib import Path

from rsp_engine.errors import QueryError
from rsp_engine.grammar import check, to_sparql
from rsp_engine.grammar.tree import ServicePattern, TimeWindow, find

try:
    query = check(Path(sys.argv[1]).read_text(encoding="utf-8"), source=sys.argv[1])
except QueryError as error:
    sys.exit(str(error))

for window in query.windows:
    print(f"reads {window.stream.value}", end="")
    if isinstance(window.frame, TimeWindow):
        print(f" through a window of {window.frame.range.milliseconds / 1000:g} s", end="")
    print()
for service in find(query, ServicePattern):
    print(f"asks {getattr(service.name, 'value', 'an endpoint that the data name')}")
print(to_sparql(query))
