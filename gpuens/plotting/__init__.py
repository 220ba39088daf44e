"""Pictures of an ensemble, its consensus and the evidence for the consensus.

Every function draws into the given Axes, or, like seaborn, into pyplot's current Axes, and returns the Axes. A notebook
then shows the picture, and ``plt.savefig("picture.png")`` writes it. Functions with several panels make their own
figure. matplotlib is loaded on the first drawing. A picture draws at most hundreds of elements, for any number of
objects, except maps.
"""

from gpuens.plotting.alignments import label_strips, membership_bars
from gpuens.plotting.cells import embedding
from gpuens.plotting.choice import consensus_matrices, consensus_matrix
from gpuens.plotting.comparison import comparison
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
from gpuens.plotting.places import domains, uncertainty
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
    "comparison",
    "consensus_matrices",
    "consensus_matrix",
    "correspondence",
    "criterion",
    "dendrogram",
    "domains",
    "embedding",
    "item_consensus",
    "label_strips",
    "lifetimes",
    "membership_bars",
    "silhouettes",
    "sizes",
    "tracking",
    "uncertainty",
]


def __dir__() -> list[str]:
    return sorted(__all__)
