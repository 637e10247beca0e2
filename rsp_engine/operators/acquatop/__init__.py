"""Topk+N over the Super-MTK+N list, and what it is made of."""
