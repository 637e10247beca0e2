"""Plain N-Quads as arrays of bytes: what is not needed is never parsed."""
