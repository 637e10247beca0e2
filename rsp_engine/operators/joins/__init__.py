"""Joins of triple patterns on columns."""
