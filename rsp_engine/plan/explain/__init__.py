"""Explanations of a plan as text, JSON, Graphviz and SVG."""
