"""RDF terms: their text forms, their numeric values and their order."""
