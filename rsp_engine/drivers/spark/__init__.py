"""The Spark driver. Only this package imports pyspark.

Splits are planned on the driver, read and reduced by the executors, and merged on the driver, in
micro-batches, each of which is a job:

    driver: plan  ->  executors: read, parse, match, reduce  ->  driver: answer, commit
"""
