"""Trials: which policy is better, cell by cell, with the interval of each difference."""
