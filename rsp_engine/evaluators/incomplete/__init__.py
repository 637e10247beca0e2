"""The evaluator of rankings of incomplete objects, and its configuration."""
