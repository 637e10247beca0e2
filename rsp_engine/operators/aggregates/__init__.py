"""Aggregates of each key, merged from the partials of panes, and their ranking."""
