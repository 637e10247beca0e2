"""Plans as people and programs read them."""
