"""The replica, a local copy of remote data, and the endpoints that fetch the data of SERVICE."""
