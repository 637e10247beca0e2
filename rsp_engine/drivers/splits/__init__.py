"""Splits: read and reduced in any process, then merged in the order of event time."""
