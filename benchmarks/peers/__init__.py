"""Other programs on the same streams: `make bench-peers` compares their CPU seconds with ours."""
