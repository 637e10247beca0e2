"""The profiles of Hypothesis. No test fails for being slow: time is looked at on purpose only."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.thoroughness import TIMES

settings.register_profile("usual", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "thorough", settings.get_profile("usual"), max_examples=TIMES * settings().max_examples
)
settings.load_profile("usual" if TIMES == 1 else "thorough")
