"""SAP: the window in partitions, each with its candidates."""
