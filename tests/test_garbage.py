"""Garbage: what is kept of memory that was freed."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.outside

FAULTS = """
import resource, sys
from rsp_engine.garbage import keep_freed_memory
if sys.argv[1:]:
    keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def fill():
    return [b"x" * 1_400_000 for _ in range(10)]
fill()
before = faults()
for _ in range(20):
    fill()
print(faults() - before)
"""


def page_faults(*arguments: str) -> int:
    """Return how many pages a process is given while it fills and frees 14 MB."""
    command = [sys.executable, "-c", FAULTS, *arguments]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603


@pytest.mark.skipif(sys.platform != "linux", reason="only the C library of GNU can be told")
def test_freed_memory_is_used_again_instead_of_returned() -> None:
    assert page_faults("keep") < page_faults() / 10
