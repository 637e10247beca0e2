"""Checkpoints: the log of commits from which a run resumes after a crash."""
