"""The rewrite of RSP-QL to the SPARQL text that Oxigraph evaluates."""
