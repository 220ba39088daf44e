"""Functions that each do a complete task: cluster, choose a number of clusters, compare and describe, for example."""
