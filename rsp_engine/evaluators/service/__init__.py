"""SERVICE: the replica of a clause, its refresh, and general queries over it."""
