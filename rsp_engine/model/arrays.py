"""Type aliases of the numpy arrays that operators and policies exchange."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Booleans", "Floats", "Integers"]

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
