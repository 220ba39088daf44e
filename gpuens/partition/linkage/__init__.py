"""Linkage without N × N: dendrograms of label rows, exact average and single linkage, and their cuts."""
