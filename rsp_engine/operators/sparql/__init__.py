"""SPARQL over windows and elements, evaluated by Oxigraph or matched without a store."""
