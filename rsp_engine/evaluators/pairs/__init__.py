"""The evaluator of rankings of pairs, and its configuration."""
