"""The room of the drivers: one query as it runs, the local driver, and the edges of the engine.

Sources and sinks are here. The Spark driver will be, and will alone import pyspark.
"""
