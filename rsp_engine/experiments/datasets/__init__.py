"""Datasets of the experiments: recorded, replayed and generated."""
