"""An RDF stream processing engine for continuous top-k queries in RSP-QL."""

__version__ = "0.1.0"
