"""Long tests: they run with `make soak`, each file is a part of it."""
