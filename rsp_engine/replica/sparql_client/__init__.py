"""The SPARQL client: one request, answered whole and in time, or a fault."""
