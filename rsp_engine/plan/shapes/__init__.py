"""Query shapes: one recogniser for each evaluator."""
