"""The logical plan: the algebra, its translation from the syntax tree, and its rewrite rules."""
