"""The data model that all packages share: plain typed values, without input or output."""
