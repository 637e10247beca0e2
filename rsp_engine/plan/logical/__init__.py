"""The logical plan: the algebra, its translation and its rules."""
