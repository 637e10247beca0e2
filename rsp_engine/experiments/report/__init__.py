"""What came out of the experiments: measured, held against the paper, drawn and written down."""
