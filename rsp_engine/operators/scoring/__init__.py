"""Scores: scoring functions, the numbers they give, and how good a ranking is."""
