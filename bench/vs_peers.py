"""A comparison of gpuens with other packages, on the same label matrices in one run: seconds, memory, agreement.

    python bench/vs_peers.py [--only linkage graph kmeans partitions] [--labels FILE.npy] [--cache DIR] [--older PYTHON]
    python bench/vs_peers.py --quick

linkage  average linkage on the full co-association matrix, by fastcluster (5,000, 10,000, 20,000 objects) and SciPy
         (up to 10,000), against EAC; and on the locally weighted one against LWEA, whose heights have few ties
graph    ccHBGF against HBGF, 10,000 to 1,000,000 objects
kmeans   one-hot labels and scikit-learn's KMeans against LWGP and LWEA
partitions
         the same method by ours and by another package: CSPA, MCLA, HBGF and HGPA by ensembleclustering, once
         ClusterEnsembles, which needs --older, an interpreter with SciPy 1.10; EM by stepmix, QMI by KMeans on
         one-hot labels; 1,000 and 5,000 objects, 10 clusterings with k in 7 … 30

The ensembles are noisy copies of a known truth (see `mixture`), in which nearly all label rows are distinct: the
hardest case for what works on distinct rows. --labels adds another label matrix to `linkage`, such as one that
covtype.py keeps in its --cache: its first 20 clusterings, of objects drawn from it. Every measurement has a process of
its own; packages that are not installed are said to be so. About six minutes on two cores. Results are written after
each measurement, and those in the output file are kept if they are of the same machine and the same commit.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import parts
import report
from parts import Job, Part

N_CLASSES = 25
N_CLUSTERINGS = 20
K_BOUNDS = (7, 100)
SIZES = {"linkage": (5_000, 10_000, 20_000), "graph": (10_000, 20_000, 100_000, 1_000_000)}
SIZES["kmeans"] = SIZES["graph"]
SIZES["partitions"] = (1_000, 5_000)
QUICK_SIZES = {"linkage": (1_000,), "graph": (2_000,), "kmeans": (2_000,), "partitions": (500,)}
SMALL = (10, (7, 30))  # clusterings and bounds of k for `partitions`, where a peer compares clusters one by one
SCIPY_UP_TO = 10_000
LWEA_UP_TO = 100_000  # largest number of objects for LWEA; a million distinct rows take linkage most of an hour
SPEEDUP = {"linkage": 20.0, "graph": 3.0}  # targets at the largest size
AS_GOOD = 0.005  # tolerated loss of NMI
PACKAGES = ("gpuens", "fastcluster", "ccHBGF", "stepmix", "numpy", "scipy", "scikit-learn")
OLDER = ("ensembleclustering",)  # packages that need SciPy 1.10
OURS = {"co-association": "EAC", "locally weighted": "LWEA"}


def main() -> None:
    parser = parts.parser(__doc__, PARTS, quick="up to 2,000 objects")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="label matrix (.npy) for linkage")
    parser.add_argument("--noise", type=float, default=0.2, help="share of labels drawn at random (0.2)")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where the ensembles are kept")
    parser.add_argument("--older", type=Path, metavar="PYTHON", help=f"an interpreter that has {', '.join(OLDER)}")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds after which a measurement is given up")
    options = parser.parse_args()
    setting = {"labels": options.labels and options.labels.name, "noise": options.noise}
    with tempfile.TemporaryDirectory() as scratch:
        options.scratch = Path(scratch)
        page = report.Page("vs_peers", sys.modules[__name__])
        parts.run("vs_peers", options, PARTS, page.markdown, packages=PACKAGES, setting=setting, said=cost)


def cost(row: common.Record) -> str:
    return f"{common.seconds(row['first'])} s"


# --- the ensembles ----------------------------------------------------------------------------------------------------


def mixture(
    n_objects: int, noise: float, seed: int, n_clusterings: int = N_CLUSTERINGS, bounds: tuple[int, int] = K_BOUNDS
) -> tuple[np.ndarray, np.ndarray]:
    """Return base clusterings (n_objects, n_clusterings), uint8, of a truth (n_objects,), and the truth.

    Each clustering lays the classes side by side on a line, in an order of its own, and cuts the line into k equal
    pieces, which join or split classes; an object keeps its place within its class. Then a share of the labels is
    drawn at random.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(N_CLASSES, size=n_objects)
    place = rng.random(n_objects)
    labels = np.empty((n_objects, n_clusterings), dtype=np.uint8, order="F")
    for column in labels.T:
        k = rng.integers(*bounds, endpoint=True)
        column[:] = (rng.permutation(N_CLASSES)[truth] + place) * (k / N_CLASSES)
        is_noise = rng.random(n_objects) < noise
        column[is_noise] = rng.integers(k, size=np.count_nonzero(is_noise))
    return labels, truth


def sizes(options: argparse.Namespace, part: str) -> tuple[int, ...]:
    return (QUICK_SIZES if options.quick else SIZES)[part]


def ensemble(options: argparse.Namespace, n_objects: int, part: str = "") -> tuple[Path, Path]:
    """Return the files of the labels and of the truth of a mixture."""
    folder = options.cache or options.scratch
    folder.mkdir(parents=True, exist_ok=True)
    small = SMALL if part == "partitions" else ()
    stem = f"mixture_{n_objects}_noise{options.noise:g}_seed{options.seed}{'_small' * bool(small)}"
    labels, truth = folder / f"{stem}.npy", folder / f"{stem}_truth.npy"
    if not labels.exists():
        matrix, classes = mixture(n_objects, options.noise, options.seed, *small)
        np.save(truth, classes)
        np.save(folder / "partial.npy", matrix)
        (folder / "partial.npy").replace(labels)
    return labels, truth


def sources(options: argparse.Namespace, n_objects: int) -> dict[str, Path]:
    """Return label files of n objects: a mixture and, if --labels is given, objects drawn from its file."""
    sources_of = {"mixture": ensemble(options, n_objects)[0]}
    if options.labels is not None:
        matrix = np.load(options.labels, mmap_mode="r")[:, :N_CLUSTERINGS]
        rows = np.random.default_rng(options.seed).permutation(len(matrix))[:n_objects]
        path = sources_of[options.labels.name] = options.scratch / f"drawn_{n_objects}.npy"
        np.save(path, np.asfortranarray(matrix[np.sort(rows)]))
    return sources_of


def measured(
    task: Callable, options: argparse.Namespace, about: common.Record, needs: str | None, **given: Any
) -> common.Record:
    """Return the result of a child process, or its failure, with its subject: who, on how many objects."""
    from gpuens.runtime import record

    python = options.older if needs in OLDER else sys.executable
    if needs is not None and not (python and (needs in OLDER or record.versions([needs])[needs])):
        return about | {"failed": "not installed"}
    return about | common.in_child(task, limit=options.limit, python=python, **given)


# --- average linkage --------------------------------------------------------------------------------------------------


def linkage_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for n in sizes(options, "linkage"):
        for source, labels in sources(options, n).items():
            for similarity, method in OURS.items():
                about = {"source": source, "n_objects": n, "similarity": similarity}
                for contestant in (method, "fastcluster", "scipy"):
                    if contestant != "scipy" or (n <= SCIPY_UP_TO and similarity == "co-association"):
                        key = f"{source}, {n:,}, {similarity}: {contestant}"
                        yield key, partial(one_linkage, options, {"who": contestant, **about}, labels, method)


def one_linkage(options: argparse.Namespace, about: common.Record, labels: Path, method: str) -> common.Record:
    """Measure our method or another package on one label matrix, and compare their heights."""
    stem = f"{about['source']}_{about['n_objects']}_{method}".replace("/", "_")
    ours, heights = (options.scratch / f"{stem}_{contestant}.npy" for contestant in (method, about["who"]))
    if about["who"] == method:
        return measured(our_linkage, options, about, None, labels=labels, method=method, heights=heights)
    fields = {"package": about["who"], "similarity": about["similarity"], "heights": heights}
    row = measured(peer_linkage, options, about, about["who"], labels=labels, **fields)
    if ours.exists() and heights.exists():
        a, b = np.load(ours), np.load(heights)
        row |= {"largest_difference": float(np.abs(a - b).max()), "difference_of_sums": float((a - b).sum() / b.sum())}
    return row


def our_linkage(labels: str, method: str, heights: str) -> common.Record:
    """Measure EAC or LWEA up to SciPy's linkage matrix of all objects, because all peers return this matrix."""
    import gpuens as ge

    matrix = np.load(labels)

    def link() -> tuple[Any, np.ndarray]:
        estimator = getattr(ge, method)(2).fit(matrix)
        return estimator, estimator.linkage_matrix()

    (estimator, z), record = common.measured(link)
    np.save(heights, np.sort(z[:, 2]))
    return record | {"n_core_groups": len(estimator.reduction_.counts)}


def peer_linkage(labels: str, package: str, similarity: str, heights: str) -> common.Record:
    """Measure another package's linkage on all pairs of objects; once, since nothing is compiled."""
    from scipy.spatial.distance import pdist, squareform

    matrix = np.load(labels)

    def distances() -> np.ndarray:
        if similarity == "co-association":
            return pdist(matrix, "hamming")
        import gpuens as ge

        square = ge.similarity.lwca(matrix)
        np.subtract(1.0, square, out=square)
        np.fill_diagonal(square, 0.0)
        return squareform(square, checks=False)

    def link(condensed: np.ndarray) -> np.ndarray:
        if package == "fastcluster":
            import fastcluster

            return fastcluster.linkage(condensed, "average", preserve_input=False)
        from scipy.cluster.hierarchy import linkage

        return linkage(condensed, "average")

    condensed, build, build_cpu = common.timed(distances)
    z, merge, merge_cpu = common.timed(lambda: link(condensed))
    record = {"matrix": build, "linkage": merge, "first": build + merge, "first_cpu": build_cpu + merge_cpu}
    np.save(heights, np.sort(z[:, 2]))
    return record | {"peak": common.peak_memory(), "load": common.load()}


# --- graph partitioning and k-means -----------------------------------------------------------------------------------


def labelled(
    part: str, contestants: dict[str, str | None], options: argparse.Namespace, rows: common.Record
) -> Iterator[Job]:
    """Yield the contestants for labels of mixtures; ``contestants`` maps each to the package that it needs."""
    for n in sizes(options, part):
        for contestant, package in contestants.items():
            if contestant != "LWEA" or n <= LWEA_UP_TO:
                about = {"who": contestant, "n_objects": n}
                yield f"{n:,}: {contestant}", partial(one_labelling, options, about, package, next(iter(contestants)))


def partition_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    """Yield the contestants for labels of small mixtures: each method of gpuens, then the peer that has it."""
    for n in sizes(options, "partitions"):
        for method, peer in PAIRED.items():
            package = {"one-hot KMeans": "scikit-learn"}.get(peer, peer.split(", ")[0])
            for contestant, needs in {method: "mtkahypar" if method == "HGPA" else None, peer: package}.items():
                about = {"who": contestant, "n_objects": n, "method": method}
                yield f"{n:,}: {contestant}", partial(one_labelling, options, about, needs, method, "partitions")


def one_labelling(
    options: argparse.Namespace, about: common.Record, package: str | None, first: str, part: str = ""
) -> common.Record:
    import gpuens as ge

    labels, truth = ensemble(options, about["n_objects"], part)
    file, of_first = (options.scratch / f"{part}_{about['n_objects']}_{peer}.npy" for peer in (about["who"], first))
    row = measured(labels_of, options, about, package, contestant=about["who"], labels=labels, partition=file)
    if file.exists():
        row["nmi"] = ge.metrics.nmi(np.load(file), np.load(truth))
        row["anmi"] = float(ge.evidence.agreement(np.load(labels), np.load(file)).anmi)
        if of_first.exists():
            row["agreement"] = ge.metrics.nmi(np.load(file), np.load(of_first))
    return row


def labels_of(contestant: str, labels: str, partition: str) -> common.Record:
    """Measure a method of gpuens or of a peer, from the label matrix to a label for each object."""
    matrix = np.load(labels)
    if contestant in PEERS:
        from gpuens.runtime.record import versions

        result, record = common.measured(partial(PEERS[contestant], matrix))
        record["versions"] = versions(["numpy", "scipy"])
    else:
        import gpuens as ge

        result, record = common.measured(lambda: getattr(ge, contestant)(N_CLASSES).fit(matrix).labels_)
    np.save(partition, result)
    return record


def cc_hbgf(matrix: np.ndarray) -> np.ndarray:
    from ccHBGF import find_consensus

    return find_consensus(matrix, n_clusters=N_CLASSES, random_state=0)


def one_hot_kmeans(matrix: np.ndarray) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import OneHotEncoder

    return KMeans(N_CLASSES, random_state=0).fit(OneHotEncoder(dtype=np.float32).fit_transform(matrix)).labels_


def stepmix(matrix: np.ndarray) -> np.ndarray:
    """Fit latent classes: the mixture of EM, with the same numbers of starts and iterations."""
    from stepmix import StepMix

    model = StepMix(N_CLASSES, measurement="categorical", n_init=10, max_iter=100, random_state=0, progress_bar=0)
    return model.fit(matrix.astype(int)).predict(matrix.astype(int))


def ensembleclustering(solver: str, matrix: np.ndarray) -> np.ndarray:
    from ensembleclustering import cluster_ensembles

    return cluster_ensembles(matrix.T.astype(float), N_CLASSES, solver=solver, random_state=0)


PAIRED = {method: f"ensembleclustering, {method.lower()}" for method in ("CSPA", "MCLA", "HBGF", "HGPA")}
PAIRED |= {"EM": "stepmix", "QMI": "one-hot KMeans"}
PEERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ccHBGF": cc_hbgf,
    "one-hot KMeans": one_hot_kmeans,
    "stepmix": stepmix,
    **{peer: partial(ensembleclustering, peer.split(", ")[1]) for peer in PAIRED.values() if ", " in peer},
}
PARTS = {
    "linkage": Part(linkage_jobs),
    "graph": Part(partial(labelled, "graph", {"HBGF": None, "ccHBGF": "ccHBGF"})),
    "kmeans": Part(partial(labelled, "kmeans", {"LWGP": None, "LWEA": None, "one-hot KMeans": "scikit-learn"})),
    "partitions": Part(partition_jobs),
}


# --- the page ---------------------------------------------------------------------------------------------------------


def settled(row: common.Record) -> float:
    """Return the seconds of later calls, or of the first call if there were no others."""
    return row.get("later") or row["first"]


def beside(rows: common.Record, first: str) -> Iterator[common.Record]:
    """Yield rows with the ratio of their seconds to those of gpuens, for first and for later calls."""
    ours = {row["n_objects"]: row for row in rows.values() if row["who"] == first}
    for row in rows.values():
        line, our_row = {"title": row["who"]}, ours.get(row["n_objects"])
        if "n_core_groups" in row:
            line["title"] = f"**{row['who']}**, {row['n_core_groups']:,} core groups"
        if our_row and row["who"] != first:
            line |= {"by_first": row["first"] / our_row["first"], "by_later": settled(row) / settled(our_row)}
        yield {**row, **line}


def matches(rows: common.Record) -> dict[str, common.Record]:
    """Return the rows of each source and similarity."""
    found: dict[str, common.Record] = {}
    for key, row in rows.items():
        found.setdefault(f"{row['similarity']}: {row['source']}", {})[key] = row
    return found


def page_values(record: common.Record) -> common.Record:
    setting = next(iter(record["parts"].values()), {"setting": {"labels": None, "noise": 0.2}})["setting"]
    text = f"; for linkage, also objects of {setting['labels']}" if setting["labels"] else ""
    return {"noise": setting["noise"], "drawn": text}


def linkage_values(rows: common.Record, record: common.Record) -> common.Record:
    return {"lists": {"match": list(matches(rows))}}


def linkage_lines(rows: common.Record, match: str) -> Iterator[common.Record]:
    return ({**row, "match": match} for row in beside(matches(rows)[match], OURS[match.split(":")[0]]))


def graph_lines(rows: common.Record) -> Iterator[common.Record]:
    return beside(rows, "HBGF")


def kmeans_lines(rows: common.Record) -> Iterator[common.Record]:
    return beside(rows, "LWGP")


def of_method(rows: common.Record) -> dict[str, common.Record]:
    """Return the rows of each method of ours and of the peer beside it."""
    groups: dict[str, common.Record] = {}
    for key, row in rows.items():
        groups.setdefault(row["method"], {})[key] = row
    return groups


def partition_lines(rows: common.Record) -> Iterator[common.Record]:
    for method, rows_of_method in of_method(rows).items():
        yield from beside(rows_of_method, method)


def partitions(rows: common.Record) -> Iterator[report.Found]:
    for method, rows_of_method in of_method(rows).items():
        largest = max(row["n_objects"] for row in rows_of_method.values())
        ours, *peers = (row for row in rows_of_method.values() if row["n_objects"] == largest)
        for row in peers:
            took = {
                side: {"seconds": settled(row_of_side), "cpu": row_of_side.get("later_cpu") or row_of_side["first_cpu"]}
                for side, row_of_side in {"ours": ours, "theirs": row}.items()
            }
            yield (
                "beside",
                {"n": largest, "method": method, "their": row["who"], "ours": ours, "theirs": row, "took": took},
            )


def linkage(rows: common.Record) -> Iterator[report.Found]:
    for match, rows_of_match in matches(rows).items():
        yield from judged(rows_of_match, "linkage", OURS[match.split(":")[0]], "fastcluster", match)


def graph(rows: common.Record) -> Iterator[report.Found]:
    return judged(rows, "graph", "HBGF", "ccHBGF", "Mixture")


def judged(rows: common.Record, part: str, our_name: str, their_name: str, match: str) -> Iterator[report.Found]:
    """Compare first calls and later ones at the largest size, and say where the first call of theirs is the faster one.

    The target is of later calls, at no worse an NMI.
    """
    of = {(row["n_objects"], row["who"]): row for row in rows.values()}
    for n in SIZES[part]:
        if {(n, our_name), (n, their_name)} - of.keys():
            continue
        ours, theirs = of[n, our_name], of[n, their_name]
        first = {"ours": ours["first"], "theirs": theirs["first"], "ratio": theirs["first"] / ours["first"]}
        values = {"match": match, "n": n, "ours": our_name, "theirs": their_name, "first": first}
        if first["ratio"] < 1:
            yield "slower", values
        if n == SIZES[part][-1]:
            ratio, goal = settled(theirs) / settled(ours), SPEEDUP[part]
            ok = ratio >= goal and ours.get("nmi", 0) >= theirs.get("nmi", 0) - AS_GOOD
            quality = f", at an NMI of {ours['nmi']:.4f} against {theirs['nmi']:.4f}" if "nmi" in ours else ""
            only = "" if "later" in theirs else " only call"
            yield "target", values | {"wanted": goal, "ratio": ratio, "held": ok, "at": quality, "only": only}


if __name__ == "__main__":
    main()
