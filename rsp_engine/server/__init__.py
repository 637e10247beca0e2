"""The service: streams and queries that come and go, over HTTP.

    options         the options of `rsp serve`
    data_folder     all that outlives the server, on disk
    access          the files, servers and sources that requests may open
    refusals        requests that are not carried out
    diagnostics     diagnostics as plain data, for editors
    streams         declared streams: their logs, receivers and figures
    pushes          what requests push: bodies, cut into messages
    declaration     a stream as a request states it
    registration    a query as it was registered: its text, its bindings, its start
    catalog         the streams, queries and jobs that there are, and what follows from them
    admission       whether a query fits the others, which job evaluates it, and since when
    planning        what the worker of a group runs, and from where it reads each log
    descriptions    streams and queries as plain data
    groups          processes that run queries over logs
    service         the service without HTTP: it changes the catalog, and keeps groups running
    web             the HTTP API and its description
    console         the files of the console for browsers

Each query runs in a group: a process of its own, unless the user names one for several. The server
writes the logs of streams; workers read them, and write the logs of answers, from which the server
answers requests and other workers read on.
"""
