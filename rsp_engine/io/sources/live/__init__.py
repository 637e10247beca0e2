"""Live sources: messages of brokers and servers, written to disk before they are acknowledged.

    schemes         the protocols by URL scheme, and their options
    address         host, port and topic; credentials from the environment
    mqtt, websocket, sse, folder    one protocol each: connect, and deliver messages
    receiver        the thread of a source: it reconnects, and writes the spool
    spool           messages on disk
    records         the binary format of a message in the spool
    deduplicator    recognition of messages that are delivered again
    payloads        the elements of a message
    source          a live source as the drivers see it: a file that grows
    lifecycle       starts and stops the live sources of a run

The path of a message:

    broker -> receiver -> spool (on disk) -> splits -> elements
                  <- acknowledgement, once the message is on disk
"""
