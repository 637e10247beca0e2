"""The service: streams and queries that come and go, over HTTP.

    options         the options of `rsp serve`
    data_folder     all that outlives the server, on disk
    access          the files, servers and sources that requests may open
    refusals        requests that are not carried out
    diagnostics     diagnostics as plain data, for editors
    streams         declared streams: their logs, receivers and figures
    pushes          what requests push: bodies, cut into messages
    registration    a query as it was registered: its text, its bindings, its start
    groups          processes that run queries over logs
    service         the service without HTTP: streams, queries and groups
    web             the HTTP API and its description
    console         the files of the console for browsers

Each query runs in a group: a process of its own, unless the user names one for several. The server
writes the logs of streams; workers read them, and write the logs of answers, from which the server
answers requests and other workers read on.
"""
