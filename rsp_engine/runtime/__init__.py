"""The room of the drivers: the evaluation of one window, on Spark or in one process, and its edges.

Sources, sinks, checkpoints and metrics belong here. Only the Spark driver imports pyspark.
"""
