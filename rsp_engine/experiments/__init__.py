"""The room of the experiments: replay a suite under several policies and compare the answers."""
