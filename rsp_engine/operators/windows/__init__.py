"""S2R, reports and R2S: windows over streams, and what leaves them."""
