"""Benchmarks, and the baselines of the papers that only they measure and only tests check."""
