"""Hashes of objects: pseudorandom 64-bit numbers that are the same in every run.

Steele, Lea, Flood: Fast splittable pseudorandom number generators. OOPSLA 2014 (SplitMix64).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Integers

__all__ = ["hash_keys", "text_hash"]

_STEP = np.uint64(0x9E3779B97F4A7C15)


def text_hash(text: str) -> int:
    """Return a hash of a text that, unlike Python's own, is the same in every process.

    >>> text_hash("<urn:a>")
    -7498495246827335074
    """
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def hash_keys(keys: Integers, seed: int = 0) -> NDArray[np.uint64]:
    """Return a hash of each key, independent for each seed.

    >>> hash_keys(np.array([1, 2])).tolist()
    [10451216379200822465, 10905525725756348110]
    """
    mixed = keys.astype(np.uint64) + _STEP * np.uint64(seed)
    mixed += _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
