"""The engine against a naive evaluator, over random streams, queries, windows and options.

    generating  ->  Case  ->  evaluation (naive)  ->  expected answers
                          ->  running (the engine: every operator, every way of reading)

The evaluator shares no code with the engine: `terms`, `numeric`, `moments`, `order`, `expressions`,
`aggregates`, `patterns`, `queries`, `windows` and `evaluation` are plain Python.
"""
