"""Scores: scoring functions, their exact evaluation, and the quality of rankings."""
