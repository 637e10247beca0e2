"""Recorded streams: one module per format, and the parsers that formats share."""
