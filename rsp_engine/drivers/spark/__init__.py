"""The room of the Spark driver: only here is pyspark imported.

Places of the sources are planned on the driver, read and reduced by the executors, and gathered on
the driver, micro-batch by micro-batch of Structured Streaming:

    driver: plan  ->  executors: read, parse, match, reduce  ->  driver: answer, commit
                      (readStream)                               (foreachBatch)
"""
