"""The replica: what is held of remote data, and how old it is."""
