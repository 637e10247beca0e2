"""Endpoints: the sources of remote data."""
