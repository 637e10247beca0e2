"""Splits: read and reduced anywhere, merged again in the order of time."""
