"""The room of the local copy of remote data, and of the clients that fetch what SERVICE names."""
