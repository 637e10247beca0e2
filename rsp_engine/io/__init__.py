"""What comes in and what goes out: sources and sinks."""
