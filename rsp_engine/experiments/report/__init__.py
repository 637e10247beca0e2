"""The report: measures of result folders, the claims of the paper, figures and tables."""
