"""AcquaTop's Topk+N over the Super-MTK+N list, and the ranking of a whole window."""
