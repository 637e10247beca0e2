"""The test kit: tests of your own queries, in Python and in case files.

`StreamTest` feeds an engine, moves event time, and compares the answers with a table. A case file
has the same as text; `rsp test` runs it.
"""

from __future__ import annotations

from rsp_engine.testing.stream_test import StreamTest

__all__ = ["StreamTest"]
