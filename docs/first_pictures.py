"""The three pictures of the first page, docs/static/NAME.png: `python docs/first_pictures.py [tissue covtype digits]`.

Each picture is a consensus of real data, computed by gpuens:

- tissue: 5,488 cells of a mouse brain (MERFISH), in the domains of which ten programs have clusterings each;
- covtype: 581,012 patches of forest (UCI Covertype), from 20 k-means clusterings;
- digits: 1,797 handwritten digits (scikit-learn), from 20 k-means clusterings.

GPUENS_DATA is the folder of covtype.npz and of spatial/merfish04.npz (labels, truth, coordinates; Honchkrow/Space, MIT
licence); scikit-learn brings the digits, and downloads Covertype. The figures in the captions of docs/index.md are
those that this program prints.
"""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from PIL import Image

import gpuens as ge
from gpuens.plotting.drawing import CLUSTERS

HERE = Path(__file__).parent
DATA = Path(os.environ.get("GPUENS_DATA", "."))
INCHES = (3.6, 3.6)  # width and height of each picture
DPI = 200
PIXELS = 480  # rows and columns of the plane of Covtype
DIGIT_INCHES = 0.135  # width of a digit, and least distance of two
COLORS = 64  # colours of a file


def main(names: list[str]) -> None:
    for name in names or PICTURES:
        figure, ax = plt.subplots(figsize=INCHES)
        figure.subplots_adjust(0, 0, 1, 1)
        ax.set_axis_off()
        PICTURES[name](ax)
        path = HERE / "static" / f"{name}.png"
        figure.savefig(path, dpi=DPI, transparent=True)
        plt.close(figure)
        Image.open(path).quantize(COLORS, Image.Quantize.FASTOCTREE).save(path, optimize=True)
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


def draw_tissue(ax: plt.Axes) -> None:
    """Draw the cells of a tissue in the colours of their domains."""
    data = np.load(DATA / "spatial" / "merfish04.npz")
    labels, truth, places = data["labels"], data["truth"], data["coordinates"]
    k = len(np.unique(truth[truth >= 0]))
    est = ge.Spatial(k).fit(labels, coordinates=places)
    members = [ge.metrics.ari(truth, column) for column in labels.T]
    print(
        f"tissue: {len(labels):,} cells, {k} domains, ARI {ge.metrics.ari(truth, est.labels_):.2f};"
        f" of the programs {np.mean(members):.2f} on average, {max(members):.2f} at best"
    )
    ax.scatter(*places.T, c=[CLUSTERS[label] for label in est.labels_], s=6, linewidths=0)
    ax.margins(0.01)
    ax.set_aspect("equal")
    ax.invert_yaxis()


def draw_covtype(ax: plt.Axes) -> None:
    """Draw patches of forest by elevation and distance to a road, in the colour of most patches at a pixel."""
    X = ge.datasets.load("covtype").X
    labels = ge.generate.kmeans_ensemble(X, 20, (7, 100), random_state=0)
    est = ge.LWGP(n_clusters=7, random_state=0).fit(labels)
    print(f"covtype: {len(X):,} objects, {est.reduction_.rows.n_rows:,} different rows")
    elevation, road = X[:, 0], X[:, 5]
    bins = [np.linspace(*np.quantile(values, (0.001, 0.999)), PIXELS + 1) for values in (elevation, road)]
    counts = np.stack([np.histogram2d(elevation[est.labels_ == c], road[est.labels_ == c], bins)[0] for c in range(7)])
    colors = np.array([to_rgb(color) for color in CLUSTERS[:7]])
    density = np.minimum(1, counts.sum(axis=0) / 12) ** 0.5
    ax.imshow(np.dstack([colors[counts.argmax(axis=0)], density]), origin="lower", aspect="auto")


def draw_digits(ax: plt.Axes) -> None:
    """Draw digits, in the colours of their clusters, on a map on which similar ones are near."""
    from sklearn.manifold import TSNE

    data = ge.datasets.load("digits")
    labels = ge.generate.kmeans_ensemble(data.X, 20, (10, 30), random_state=0)
    est = ge.LWGP(n_clusters=10, random_state=0).fit(labels)
    print(f"digits: {len(data.X):,} objects, ARI {ge.metrics.ari(data.y, est.labels_):.2f}")
    places = TSNE(random_state=0).fit_transform(data.X)
    places = (places - places.min(axis=0)) / np.ptp(places, axis=0) * INCHES
    ax.scatter(*places.T, c=[CLUSTERS[label] for label in est.labels_], s=4, linewidths=0, alpha=0.25)
    shown: list[int] = []
    for i, place in enumerate(places):
        if all(np.abs(place - places[j]).max() > DIGIT_INCHES for j in shown):
            shown.append(i)
            shades = np.clip(data.X[i].reshape(8, 8, 1) / data.X.max(), 0, 1)
            color = np.broadcast_to(to_rgb(CLUSTERS[est.labels_[i]]), (8, 8, 3))
            (x, y), half = place, DIGIT_INCHES / 2
            ax.imshow(np.dstack([color, shades]), extent=[x - half, x + half, y - half, y + half])
    ends = (-DIGIT_INCHES, INCHES[0] + DIGIT_INCHES)
    ax.set(xlim=ends, ylim=ends)


PICTURES = {"tissue": draw_tissue, "covtype": draw_covtype, "digits": draw_digits}

if __name__ == "__main__":
    main(sys.argv[1:])
