"""Datasets of the experiments: generated, derived from recorded traces, or recorded runs."""
