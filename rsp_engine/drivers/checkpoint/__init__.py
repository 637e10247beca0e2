"""Checkpoints: what is written down, so that a run goes on after a crash."""
