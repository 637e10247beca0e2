"""Top-k over sliding windows: MinTopk, its super-top-k list, and the contract of the family."""
