"""AcquaTop: a window joined with a replica under a budget, and ranked by Topk+N."""
