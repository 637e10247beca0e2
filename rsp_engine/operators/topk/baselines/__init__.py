"""Baselines of the top-k operators, and the oracle that tests compare them with."""
