"""Complete tasks, each by one call: cluster, choose a number of clusters, compare, describe, estimate costs, run."""
