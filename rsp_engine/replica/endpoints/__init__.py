"""Endpoints: where remote data come from."""
