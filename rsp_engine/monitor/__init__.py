"""What others may see of a run: its counts, its metrics and its manifest."""
