"""The room of the top-k algorithms: pure, one to a file, each with the paper that it comes from."""
