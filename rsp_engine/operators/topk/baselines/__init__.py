"""Baselines of the top-k family, and the oracle."""
