"""Input and output: sources read streams, sinks write answers."""
