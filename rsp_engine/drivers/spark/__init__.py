"""The Spark driver. Only this package imports pyspark.

Splits are planned on the driver, read and reduced by the executors, and merged on the driver, in
the micro-batches of Structured Streaming:

    driver: plan  ->  executors: read, parse, match, reduce  ->  driver: answer, commit
                      (readStream)                               (foreachBatch)
"""
