"""RDF terms: their text, their numbers and their order."""
