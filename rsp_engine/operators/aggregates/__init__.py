"""Aggregates by key, put together from panes, and their ranking."""
