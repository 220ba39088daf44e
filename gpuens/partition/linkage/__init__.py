"""Linkage of label rows: exact average and single linkage without N × N, complete linkage, and cuts of dendrograms."""
