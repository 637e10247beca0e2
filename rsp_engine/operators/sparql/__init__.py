"""SPARQL over windows and elements, asked of Oxigraph or matched without it."""
