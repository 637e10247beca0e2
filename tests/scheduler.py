"""How tests are spread over workers: those stay together that share Spark, a fixture or a cache."""

from __future__ import annotations

import re
from functools import cache

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.data import PROJECT

SHARED = re.compile(r'^@pytest\.fixture\(scope="module"\)|^@cache|^@lru_cache', re.MULTILINE)
"""What the tests of a file share, if they are run by the same worker."""


class SharedOnOneWorker(LoadScopeScheduling):  # type: ignore[misc]
    """A scheduler that keeps tests together which share Spark, a fixture or a cache."""

    def _split_scope(self, nodeid: str) -> str:
        if "spark" in nodeid:
            return "spark"
        file = nodeid.partition("::")[0]
        return file if _shares(file) else nodeid


@cache
def _shares(file: str) -> bool:
    return SHARED.search((PROJECT / file).read_text(encoding="utf-8")) is not None
