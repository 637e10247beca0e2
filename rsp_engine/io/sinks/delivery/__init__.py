"""Delivery of answers to other programs: an outbox, one deliverer with ids, a courier per protocol.

    a run ── put ──> outbox ── take ──> deliverer ── deliver ──> courier ──> MQTT, HTTP, Kafka, ...
                       ^                    │
                       └── acknowledge ─────┘

An answer leaves the outbox when the other side has acknowledged it. Until then it is delivered
again, always with the same id, which follows from its query and window.
"""
