"""HTTP requests: to allowed origins, within a deadline; a complete answer, or a cause."""
