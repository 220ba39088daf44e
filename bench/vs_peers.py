"""gpuens beside other packages, on the same label matrices in the same run: seconds, memory, agreement.

    python bench/vs_peers.py [--only linkage graph kmeans] [--labels FILE.npy] [--cache DIR] [--output FILE.json]
    python bench/vs_peers.py --quick

linkage  average linkage on the full co-association matrix, by fastcluster (5,000, 10,000, 20,000 objects) and SciPy
         (up to 10,000), against EAC; and on the locally weighted one against LWEA, whose heights have few ties
graph    ccHBGF against HBGF, 10,000 to 1,000,000 objects
kmeans   one-hot labels and scikit-learn's KMeans against LWGP and LWEA

The ensembles are noisy copies of a known truth (see `mixture`), in which nearly all label rows are distinct: the
hardest case for what works on distinct rows. --labels adds another label matrix to `linkage`, such as one that
covtype.py keeps in its --cache: its first 20 clusterings, of objects drawn from it. Every measurement has a process of
its own; packages that are not installed are said to be so. About six minutes on two cores. Results are written after
each part, and parts in the output file are kept if they are of the same machine and the same commit, so that a run that
was stopped goes on with --only.
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np

N_CLASSES = 25
N_CLUSTERINGS = 20
K_BOUNDS = (7, 100)
SIZES = {"linkage": (5_000, 10_000, 20_000), "graph": (10_000, 20_000, 100_000, 1_000_000)}
SIZES["kmeans"] = SIZES["graph"]
QUICK_SIZES = {"linkage": (1_000,), "graph": (2_000,), "kmeans": (2_000,)}
SCIPY_UP_TO = 10_000
LWEA_UP_TO = 100_000  # where nearly all rows are distinct, a million of them take linkage the better part of an hour
SPEEDUP = {"linkage": 20.0, "graph": 3.0}  # targets, at the largest size
AS_GOOD = 0.005  # what NMI may be lower by
PACKAGES = ("gpuens", "fastcluster", "ccHBGF", "numpy", "scipy", "numba", "scikit-learn")


def main() -> None:
    options = parse()
    what = {
        "bench": "vs_peers",
        "labels": options.labels.name if options.labels else None,
        "noise": options.noise,
        "seed": options.seed,
        "quick": options.quick,
        **common.about(PACKAGES),
    }
    record = common.begin(options.output, what)
    record.setdefault("parts", {})
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options, Path(scratch))
        for part in options.only:
            say(f"\n{part}")
            rows, whole, _ = common.timed(partial(PARTS[part][0], bench))
            say(f"    {whole:.0f} s in all")
            record["parts"][part] = {"date": common.today(), "load": common.load(), "rows": rows}
            record["parts"] = {name: record["parts"][name] for name in PARTS if name in record["parts"]}
            common.save(options.output, record, markdown(record))
    print(markdown(record))
    if options.output:
        say(f"\nWritten to {options.output} and {options.output.with_suffix('.md').name}.")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", default=list(PARTS), help="which parts")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="label matrix (.npy) for linkage")
    parser.add_argument("--noise", type=float, default=0.2, help="share of labels drawn at random (0.2)")
    parser.add_argument("--seed", type=int, default=0, help="of the ensembles")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where the ensembles are kept")
    parser.add_argument("--quick", action="store_true", help="up to 2,000 objects")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds after which a measurement is given up")
    parser.add_argument("--output", type=Path, help="JSON; Markdown goes beside it (bench/results, unless --quick)")
    options = parser.parse_args()
    if options.output is None and not options.quick:
        options.output = common.RESULTS / "vs_peers.json"
    return options


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- the ensembles ----------------------------------------------------------------------------------------------------


def mixture(n_objects: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return base clusterings (n_objects, N_CLUSTERINGS), uint8, of a truth (n_objects,), and the truth.

    Each clustering lays the classes side by side on a line, in an order of its own, and cuts the line into k equal
    pieces, which join or split classes; an object keeps its place within its class. Then a share of the labels is
    drawn at random.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(N_CLASSES, size=n_objects)
    place = rng.random(n_objects)
    labels = np.empty((n_objects, N_CLUSTERINGS), dtype=np.uint8, order="F")
    for column in labels.T:
        k = rng.integers(*K_BOUNDS, endpoint=True)
        column[:] = (rng.permutation(N_CLASSES)[truth] + place) * (k / N_CLASSES)
        wrong = rng.random(n_objects) < noise
        column[wrong] = rng.integers(k, size=np.count_nonzero(wrong))
    return labels, truth


class Bench:
    """The label files, and a child process for each measurement."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.folder = options.cache or scratch
        self.folder.mkdir(parents=True, exist_ok=True)

    def sizes(self, part: str) -> tuple[int, ...]:
        return (QUICK_SIZES if self.options.quick else SIZES)[part]

    def ensemble(self, n_objects: int) -> tuple[Path, Path]:
        """Return the files of the labels and of the truth of a mixture."""
        stem = f"mixture_{n_objects}_noise{self.options.noise:g}_seed{self.options.seed}"
        labels, truth = self.folder / f"{stem}.npy", self.folder / f"{stem}_truth.npy"
        if not labels.exists():
            matrix, classes = mixture(n_objects, self.options.noise, self.options.seed)
            np.save(truth, classes)
            np.save(self.folder / "partial.npy", matrix)
            (self.folder / "partial.npy").replace(labels)
        return labels, truth

    def sources(self, n_objects: int) -> dict[str, Path]:
        """Return label files of so many objects: a mixture, and objects drawn from --labels if it is given."""
        found = {"mixture": self.ensemble(n_objects)[0]}
        if self.options.labels is not None:
            matrix = np.load(self.options.labels, mmap_mode="r")[:, :N_CLUSTERINGS]
            rows = np.random.default_rng(self.options.seed).permutation(len(matrix))[:n_objects]
            path = found[self.options.labels.name] = self.scratch / f"drawn_{n_objects}.npy"
            np.save(path, np.asfortranarray(matrix[np.sort(rows)]))
        return found

    def measure(self, task: str, who: str, n_objects: int, needs: str | None = None, **arguments: Any) -> common.Record:
        """Return {"who", "n_objects"} and what the child process found, or why it found nothing."""
        row: common.Record = {"who": who, "n_objects": n_objects}
        if needs is not None and common.installed(needs) is None:
            return row | {"failed": "not installed"}
        row |= common.in_child(__file__, task, limit=self.options.limit, **arguments)
        say(f"    {n_objects:>9,}  {who}: {row.get('failed') or common.seconds(row['first']) + ' s'}")
        return row


# --- average linkage --------------------------------------------------------------------------------------------------

OURS = {"co-association": "EAC", "locally weighted": "LWEA"}
TITLES = {
    "co-association": "Co-association (matrix by scipy.spatial.distance.pdist; most heights tie)",
    "locally weighted": "Locally weighted co-association (matrix by gpuens.similarity.lwca; few heights tie)",
}


def linkage_rows(bench: Bench) -> list[common.Record]:
    rows = []
    for n in bench.sizes("linkage"):
        for source, labels in bench.sources(n).items():
            for similarity, method in OURS.items():
                rows += [row | {"source": source} for row in linkages(bench, n, labels, similarity, method)]
    return rows


def linkages(bench: Bench, n: int, labels: Path, similarity: str, method: str) -> list[common.Record]:
    """Measure our method and the other packages on one label matrix, and compare their heights."""
    heights = {who: bench.scratch / f"{who}.npy" for who in (method, "fastcluster", "scipy")}
    ours = bench.measure("our_linkage", method, n, labels=labels, method=method, heights=heights[method])
    rows = [ours]
    for who in ("fastcluster", "scipy"):
        if who == "scipy" and (n > SCIPY_UP_TO or similarity != "co-association"):
            continue
        row = bench.measure(
            "peer_linkage", who, n, who, labels=labels, package=who, similarity=similarity, heights=heights[who]
        )
        if "failed" not in row and "failed" not in ours:
            row |= compared(np.load(heights[method]), np.load(heights[who]))
        rows.append(row)
    return [row | {"similarity": similarity} for row in rows]


def compared(ours: np.ndarray, theirs: np.ndarray) -> common.Record:
    """Return how far two sorted lists of merge heights are apart."""
    return {
        "largest_difference": float(np.abs(ours - theirs).max()),
        "difference_of_sums": float((ours.sum() - theirs.sum()) / theirs.sum()),
    }


def our_linkage(labels: str, method: str, heights: str) -> common.Record:
    """Measure EAC or LWEA up to SciPy's linkage matrix of all objects, which is what the others return."""
    import gpuens as ge

    matrix = np.load(labels)

    def link() -> tuple[Any, np.ndarray]:
        estimator = getattr(ge, method)(2).fit(matrix)
        return estimator, estimator.linkage_matrix()

    (estimator, z), record = common.measured(link)
    np.save(heights, np.sort(z[:, 2]))
    return record | {"n_core_groups": len(estimator.reduction_.weights)}


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


def linkage_markdown(rows: list[common.Record]) -> str:
    lines = []
    for source in dict.fromkeys(row["source"] for row in rows):
        for similarity, method in OURS.items():
            of_it = [row for row in rows if (row["source"], row["similarity"]) == (source, similarity)]
            lines.append(f"### {TITLES[similarity]}: {source}\n\n{linkage_table(of_it, method)}")
            lines.append(verdict(of_it, "linkage", method, "fastcluster"))
    return "\n\n".join(filter(None, lines))


def linkage_table(rows: list[common.Record], method: str) -> str:
    header = ["objects", "", "matrix", "linkage", "first call", "CPU", "later calls", "peak"]
    header += [f"{method}, first call, faster by", "later by", "largest difference of heights", "of their sums"]
    ours = {row["n_objects"]: row for row in rows if row["who"] == method}
    cells = []
    for row in rows:
        n, who = row["n_objects"], row["who"]
        if "failed" in row:
            cells.append([f"{n:,}", who, row["failed"], *["–"] * (len(header) - 3)])
            continue
        line = [f"{n:,}", f"**{who}**, {row['n_core_groups']:,} core groups" if who == method else who]
        line += [common.seconds(row.get(key)) for key in ("matrix", "linkage", "first", "first_cpu", "later")]
        line += [common.size(row["peak"]), *(ratios(row, ours[n]) if who != method else ("–", "–"))]
        line += [f"{row[key]:.1e}" if key in row else "–" for key in ("largest_difference", "difference_of_sums")]
        cells.append(line)
    return common.table(header, cells)


def ratios(peer: common.Record, ours: common.Record) -> tuple[str, str]:
    """Return how many times longer another package took: first calls, and later calls where there are any."""
    if "failed" in peer or "failed" in ours:
        return "–", "–"
    return f"{peer['first'] / ours['first']:.1f}×", f"{settled(peer) / settled(ours):.1f}×"


def settled(row: common.Record) -> float:
    """Return the seconds of later calls, or of the first where there were none."""
    return row.get("later") or row["first"]


def verdict(rows: list[common.Record], part: str, our_name: str, their_name: str) -> str:
    """Return whether ours is as many times faster as was wanted, at the largest size and at no worse an NMI."""
    n, wanted = SIZES[part][-1], SPEEDUP[part]
    if all(row["n_objects"] < n for row in rows):
        return ""
    target = f"Target at {n:,} objects, later calls: {our_name} ≥ {wanted:.0f} times as fast as {their_name}"
    ours, theirs = (
        next(row for row in rows if (row["n_objects"], row["who"]) == (n, w)) for w in (our_name, their_name)
    )
    if "failed" in ours or "failed" in theirs:
        return f"{target}: cannot be judged."
    ratio = settled(theirs) / settled(ours)
    if "nmi" not in ours:
        return f"{target}: {common.held(ratio >= wanted)} ({ratio:.1f} times)."
    ok = ratio >= wanted and ours["nmi"] >= theirs["nmi"] - AS_GOOD
    return (
        f"{target}: {common.held(ok)} ({ratio:.1f} times, at an NMI of {ours['nmi']:.4f} against {theirs['nmi']:.4f})."
    )


# --- graph partitioning and k-means -----------------------------------------------------------------------------------


def graph_rows(bench: Bench) -> list[common.Record]:
    return labelled(bench, "graph", {"HBGF": None, "ccHBGF": "ccHBGF"})


def kmeans_rows(bench: Bench) -> list[common.Record]:
    return labelled(bench, "kmeans", {"LWGP": None, "LWEA": None, "one-hot KMeans": "scikit-learn"})


def labelled(bench: Bench, part: str, contestants: dict[str, str | None]) -> list[common.Record]:
    """Measure who finds the labels of mixtures; ``contestants`` maps them to the package they need."""
    import gpuens as ge

    rows = []
    for n in bench.sizes(part):
        labels, truth = bench.ensemble(n)
        partitions = {}
        for who, package in contestants.items():
            if who == "LWEA" and n > LWEA_UP_TO:
                continue
            partition = bench.scratch / f"{who}.npy"
            row = bench.measure("labels_of", who, n, package, contestant=who, labels=labels, partition=partition)
            if "failed" not in row:
                partitions[who] = np.load(partition)
                row["nmi"] = ge.metrics.nmi(partitions[who], np.load(truth))
                if (first := next(iter(contestants))) in partitions:
                    row["agreement"] = ge.metrics.nmi(partitions[who], partitions[first])
            rows.append(row)
    return rows


def labels_of(contestant: str, labels: str, partition: str) -> common.Record:
    """Measure one method, ours or another's, from the label matrix to a label for each object."""
    matrix = np.load(labels)

    def cc_hbgf() -> np.ndarray:
        from ccHBGF import find_consensus

        return find_consensus(matrix, n_clusters=N_CLASSES, random_state=0)

    def one_hot_kmeans() -> np.ndarray:
        from sklearn.cluster import KMeans
        from sklearn.preprocessing import OneHotEncoder

        return KMeans(N_CLASSES, random_state=0).fit(OneHotEncoder(dtype=np.float32).fit_transform(matrix)).labels_

    def ours() -> np.ndarray:
        import gpuens as ge

        return getattr(ge, contestant)(N_CLASSES).fit(matrix).labels_

    found, record = common.measured({"ccHBGF": cc_hbgf, "one-hot KMeans": one_hot_kmeans}.get(contestant, ours))
    np.save(partition, found)
    return record


def labels_markdown(rows: list[common.Record]) -> str:
    first = rows[0]["who"]
    header = ["objects", "", "first call", "CPU", "later calls", "CPU", "peak", "NMI to the truth", f"NMI to {first}"]
    header += [f"{first}, first call, faster by", "later by"]
    reference = {row["n_objects"]: row for row in rows if row["who"] == first}
    cells = []
    for row in rows:
        n, who = row["n_objects"], row["who"]
        if "failed" in row:
            cells.append([f"{n:,}", who, row["failed"], *["–"] * (len(header) - 3)])
            continue
        line = [f"{n:,}", who]
        line += [common.seconds(row.get(key)) for key in ("first", "first_cpu", "later", "later_cpu")]
        line += [common.size(row["peak"]), common.number(row["nmi"], 4), common.number(row.get("agreement"), 4)]
        cells.append([*line, *(ratios(row, reference[n]) if who != first else ("–", "–"))])
    return common.table(header, cells)


def graph_markdown(rows: list[common.Record]) -> str:
    return f"{labels_markdown(rows)}\n\n{verdict(rows, 'graph', 'HBGF', 'ccHBGF')}".rstrip()


PARTS = {
    "linkage": (linkage_rows, linkage_markdown, "Average linkage: all pairs of objects against EAC and LWEA"),
    "graph": (graph_rows, graph_markdown, "Bipartite graph partitioning: ccHBGF against HBGF"),
    "kmeans": (kmeans_rows, labels_markdown, "One-hot labels and k-means against LWGP and LWEA"),
}


def markdown(record: common.Record) -> str:
    lines = [f"# Other packages on the same ensembles\n\n{common.machine_line(record)}\n"]
    drawn = f"; for linkage, also objects of {record['labels']}" if record["labels"] else ""
    lines.append(
        f"Ensembles: {N_CLUSTERINGS} clusterings, k in {K_BOUNDS[0]} … {K_BOUNDS[1]}, noisy copies of {N_CLASSES} "
        f"classes with {record['noise']:.0%} of the labels drawn at random{drawn}. Seconds are those of a process of "
        "its own; the first call includes imports and compilation (ours is kept on disk between processes), later "
        "calls are the median of up to three. CPU counts all threads; peak is the whole process."
    )
    for part, found in record["parts"].items():
        _, shown, title = PARTS[part]
        load = "" if found["load"] is None else f", load of the machine {found['load']:g}"
        lines.append(f"\n## {title}\n\nMeasured on {found['date']}{load}.\n\n{shown(found['rows'])}")
    return "\n".join(lines)


if __name__ == "__main__":
    common.serve({"our_linkage": our_linkage, "peer_linkage": peer_linkage, "labels_of": labels_of})
    main()
