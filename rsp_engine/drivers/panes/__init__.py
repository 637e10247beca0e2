"""Panes in files: what executors read is kept there, and evaluated by executors or the driver."""
