"""The HTTP API of the service.

app             the routes, and the application that has them
guard           what is refused before a route is called: hosts, origins, tokens, large bodies
problems        errors as problem documents (RFC 9457)
requests        parameters and bodies of requests
answer_feed     the answers of a query as they come, for any number of clients
texts           queries that are only checked or explained, and the words of the language
exposition      the metrics of the service, as Prometheus reads them
openapi         the description of all this, with the statuses of each operation
schemas         the schemas of what is taken and returned
listener        the server, with its sockets and signals
"""
