"""The evaluators: each answers a query over a window that closes."""
