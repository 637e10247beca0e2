"""Formats of recorded streams, one to a file."""
