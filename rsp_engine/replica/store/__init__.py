"""The store of the replica: keys, remote solutions, and their freshness."""
