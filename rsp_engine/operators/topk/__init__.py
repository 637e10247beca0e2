"""Top-k over sliding windows: MinTopk and the list that it keeps."""
