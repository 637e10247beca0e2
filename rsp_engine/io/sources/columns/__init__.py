"""Vectorised readers of plain N-Quads and JSON lines: terms are located in a text, not parsed."""
