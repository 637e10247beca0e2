"""Kafka: a topic is a durable log, so nothing is spooled; a split is a range of offsets.

    client      one connection to a topic; the only importer of confluent_kafka
    reader      reads ranges of a partition, in any process
    watch       the thread of the driver that asks for partitions and their ends
    topic       the topic as the drivers see it: partitions that grow

The path of a message:

    broker -> watch: how far a partition goes -> splits -> reader, on executors -> elements
           <- offsets of a consumer group, once the state that includes them is committed
"""
