"""Print how near the consensus comes to the truth with 0, 10, 50 and 200 true links.

    python bench/links.py DATA [--files space real_km hetero] [--draws 3]

DATA is the folder of label matrices with truth (name|labels, name|truth in npz files). A pair of objects is a must-link
if the truth has them together, else a cannot-link. "random": any pairs; "corrections": pairs on which the consensus
without links is wrong. The number of clusters is the true one, or the fewest that the links allow. "edited": average
linkage by SciPy on the similarity matrix of LWEA, in which must-links are 1 and cannot-links 0; "kept": the share of
links that its result keeps. Scores are adjusted Rand indexes over the objects without links.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

import gpuens as ge

N_LINKS = (10, 50, 200)
MOST_OBJECTS = 4_000  # largest number of objects for matrices of SciPy


def draw_links(
    truth: np.ndarray, consensus: np.ndarray | None, n_links: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return must-links and cannot-links (n, 2) of ``n_links`` pairs, on which the ``consensus`` is wrong if given."""
    pairs = rng.integers(len(truth), size=(200 * n_links, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    if consensus is not None:
        is_wrong = together != (consensus[pairs[:, 0]] == consensus[pairs[:, 1]])
        pairs, together = pairs[is_wrong], together[is_wrong]
    pairs, together = pairs[:n_links], together[:n_links]
    return pairs[together], pairs[~together]


def fit_with_links(labels: np.ndarray, k: int, must: np.ndarray, cannot: np.ndarray) -> np.ndarray:
    """Return the labels of ``k`` clusters by LWEA, or of the fewest that the links allow."""
    est = ge.LWEA(distance_threshold=0.5).fit(labels, must_link=must, cannot_link=cannot)
    return est.cut(max(k, est.dendrogram_.fewest_clusters))


def edit_matrix(labels: np.ndarray, weights: np.ndarray, k: int, must: np.ndarray, cannot: np.ndarray) -> np.ndarray:
    """Return the labels of average linkage of an edited matrix of similarities."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    ensemble = ge.Ensemble(labels)
    clusters = ensemble.codes + ensemble.offsets[:-1]
    similarity = np.zeros((len(labels), len(labels)))
    for column in clusters.T:
        similarity += (column[:, None] == column) * weights[column]
    similarity /= len(clusters.T)
    for pairs, value in ((must, 1.0), (cannot, 0.0)):
        similarity[pairs[:, 0], pairs[:, 1]] = similarity[pairs[:, 1], pairs[:, 0]] = value
    np.fill_diagonal(similarity, 1.0)
    return fcluster(linkage(squareform(1.0 - similarity, checks=False), "average"), k, "maxclust")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--files", nargs="+", default=["space", "real_km", "hetero"])
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    columns = ("file", "sets", "links", "LWEA", "edited", "Median", "kept by edited", "clusters of LWEA beyond k")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for file in options.files:
        with np.load(options.data / f"{file}.npz") as stored:
            names = sorted({name.partition("|")[0] for name in stored if ".1|" not in name})
            sets = [(stored[f"{name}|labels"], stored[f"{name}|truth"]) for name in names]
        sets = [(labels, truth) for labels, truth in sets if len(truth) <= MOST_OBJECTS]
        for kind, n_links in [("", 0), *((kind, n) for kind in ("random", "corrections") for n in N_LINKS)]:
            results = [
                row
                for labels, truth in sets
                for row in compare(labels, truth, kind, n_links, options.draws if n_links else 1)
            ]
            *scores, kept, beyond = np.mean(results, axis=0)
            means = " | ".join(f"{score:.3f}" for score in scores)
            print(f"| {file} | {len(sets)} | {n_links} {kind} | {means} | {kept:.0%} | {beyond:.1f} |", flush=True)


def compare(labels: np.ndarray, truth: np.ndarray, kind: str, n_links: int, draws: int) -> list[list[float]]:
    """Return the scores of LWEA, the edited matrix and Median, the share of kept links, and the clusters beyond k."""
    k, rng = len(np.unique(truth)), np.random.default_rng(n_links)
    plain = ge.LWEA(k).fit(labels)
    results = []
    for _ in range(draws):
        must, cannot = draw_links(truth, plain.labels_ if kind == "corrections" else None, n_links, rng)
        by_linkage = fit_with_links(labels, k, must, cannot)
        by_matrix = edit_matrix(labels, plain.similarity_.weights, k, must, cannot)
        by_median = ge.Median(k).fit_predict(labels, must_link=must, cannot_link=cannot)
        free = np.setdiff1d(np.arange(len(truth)), np.concatenate([must, cannot]))
        scores = [ge.metrics.ari(truth[free], found[free]) for found in (by_linkage, by_matrix, by_median)]
        together = [(by_matrix[pairs[:, 0]] == by_matrix[pairs[:, 1]]) for pairs in (must, cannot)]
        kept = np.concatenate([together[0], ~together[1]])
        results.append([*scores, kept.mean() if len(kept) else 1.0, float(by_linkage.max() + 1 - k)])
    return results


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
