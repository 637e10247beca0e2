"""SERVICE: the refresh of replicas, and general queries over them."""
