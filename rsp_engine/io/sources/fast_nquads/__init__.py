"""A vectorised reader of plain N-Quads: terms are located in a byte array, not parsed."""
