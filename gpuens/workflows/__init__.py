"""The work of one call: cluster, choose a number of clusters, compare, describe, foresee, run."""
