"""The room of the planner: from a syntax tree to a logical plan, by rules to a physical one."""
