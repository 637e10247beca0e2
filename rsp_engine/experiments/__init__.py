"""Experiments: suites that run refresh policies over datasets, and reports that compare them."""
