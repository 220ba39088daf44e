"""Pictures of an ensemble, its consensus and the evidence for it.

Every function draws into the given Axes, or into pyplot's current ones as seaborn does, and returns the Axes: in a
notebook the picture appears, and ``plt.savefig("picture.png")`` writes it. Functions with several panels make a figure
of their own. matplotlib is loaded on the first drawing. However many objects there are, a picture draws hundreds of
things at most.
"""

from gpuens.plotting.cells import embedding
from gpuens.plotting.choice import consensus_matrices, consensus_matrix
from gpuens.plotting.correspondences import correspondence
from gpuens.plotting.evidence import (
    between_clusters,
    cdf,
    cluster_consensus,
    clusterings,
    item_consensus,
    silhouettes,
)
from gpuens.plotting.labels import answers, coassociation_heatmap, sizes
from gpuens.plotting.levels import clustree, criterion, tracking
from gpuens.plotting.trees import ca_tree, dendrogram, lifetimes

__all__ = [
    "answers",
    "between_clusters",
    "ca_tree",
    "cdf",
    "cluster_consensus",
    "clusterings",
    "clustree",
    "coassociation_heatmap",
    "consensus_matrices",
    "consensus_matrix",
    "correspondence",
    "criterion",
    "dendrogram",
    "embedding",
    "item_consensus",
    "lifetimes",
    "silhouettes",
    "sizes",
    "tracking",
]


def __dir__() -> list[str]:
    return sorted(__all__)
