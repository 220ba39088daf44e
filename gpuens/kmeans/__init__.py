"""k-means of points."""
