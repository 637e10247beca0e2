"""Where the real data stands that some tests read: `RSP_DATA`, or `../shared/data`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]


def data_folder(folder: str) -> Path:
    """Return where a folder of the real data is, whether it is there or not."""
    return Path(os.environ.get("RSP_DATA", PROJECT.parent / "shared" / "data")) / folder


def real_data(folder: str) -> Path:
    """Return a folder of the real data, or skip the test that asks for it."""
    path = data_folder(folder)
    if not path.is_dir():
        pytest.skip(f"the data folder {folder} is not there; RSP_DATA says where to look")
    return path
