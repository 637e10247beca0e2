"""Evaluators: each computes the answers of one class of queries, window by window (R2R)."""
