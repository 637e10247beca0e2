"""The room of the operators: windows, reports, evaluation and the top-k algorithms.

All are pure, one to a file, each with the paper that it comes from.
"""
