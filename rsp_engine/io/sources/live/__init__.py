"""The room of the live sources: messages come when they come, and none is lost on the way.

address      host, port and topic; who connects, from the environment
mqtt, websocket, sse, folder      one protocol each: connect, and hand over messages until it breaks
receiving    the thread of a source: it connects again and again, and writes the spool
spool        messages on disk; what is there was acknowledged, or will be
past         what is known of messages whose spool file is gone
records      how a message is written
repeats      which messages came before
payloads     the elements of a message
source       a live source as the drivers see it: a file that grows, read place by place

broker -> receiver -> spool (on disk) -> places -> elements
              <- acknowledged, once it is on disk
"""
