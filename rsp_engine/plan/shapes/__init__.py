"""The shapes of queries, one recogniser for each evaluator."""
