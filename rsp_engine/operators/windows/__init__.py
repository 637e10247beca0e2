"""S2R, reports and R2S: windows over streams, and the streams that leave them."""
