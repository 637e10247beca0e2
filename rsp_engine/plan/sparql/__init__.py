"""From RSP-QL to the SPARQL that Oxigraph is asked."""
