"""AcquaTop: a window joined with a replica under a budget, ranked by Topk+N."""
