"""The SPARQL client: requests with limits, whose answers are complete or a fault."""
