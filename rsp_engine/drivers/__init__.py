"""The drivers: they read splits, keep the watermark, ask the evaluators and commit."""
