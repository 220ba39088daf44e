"""Pictures of an ensemble, its consensus and the evidence for it.

Every function draws into the given Axes, or into a new Figure without a window, and returns the Axes;
``ax.figure.savefig("picture.png")`` writes the file. matplotlib is loaded on the first drawing. However many objects
there are, a picture draws hundreds of things at most.
"""

from gpuens.plotting.correspondences import correspondence
from gpuens.plotting.drawing import no_matplotlib
from gpuens.plotting.labels import answers, coassociation_heatmap, sizes
from gpuens.plotting.trees import ca_tree, dendrogram, lifetimes

__all__ = [
    "answers",
    "ca_tree",
    "coassociation_heatmap",
    "correspondence",
    "dendrogram",
    "lifetimes",
    "no_matplotlib",
    "sizes",
]
