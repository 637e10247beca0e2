"""Monitoring of a run: its status, its metrics, its manifest, and the redaction of secrets."""
