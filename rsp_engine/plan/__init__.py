"""The planner: translates a syntax tree to a logical plan and chooses a physical plan for it."""
