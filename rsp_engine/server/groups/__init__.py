"""Groups: processes that run queries over logs.

group           a worker process, watched over: it is started, limited and restarted
group_plan      what a worker runs, written by the server as one file
worker          the worker process: one engine over logs, with a checkpoint
places          where in each log a query begins to read, and which windows it answers
committed_log   what a worker writes: answers and dead letters, each once
reports         what a worker reports of a query
bindings        what queries are bound to, besides streams, and how an engine is set up with it
"""
