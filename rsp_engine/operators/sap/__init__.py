"""SAP: a window split into partitions, each with its candidates."""
