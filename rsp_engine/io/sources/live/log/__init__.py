"""Logs: durable streams, written once and read by any number of runs, each from its own place.

    extent          what files of a log hold: counts of messages, least and greatest event time
    stream_log      the writer: a spool with an index and a retention
    log_reader      readers in other processes and threads
    declaration     what a log says about its messages: their format and their template
    log_source      a log as a live source, `log://FOLDER`

A log is a folder. It has one writer:

    stream.json     the name of the stream, and the format of its messages
    *.spool         the messages, see `spool`
    index.json      the extent of each file that is no longer written, and of all that were removed
    end             the offset and the number up to which messages can be read: they are on disk
"""
