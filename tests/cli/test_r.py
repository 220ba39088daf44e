"""The R code of docs/r.md runs, and gives what the same calls give in Python.

It needs Rscript with the package reticulate. Objects of ConsensusClusterPlus and SeuratObject are made by these
packages, or by hand where they are absent.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet
from scipy.spatial.distance import squareform

import gpuens as ge

PAGE = Path(__file__).resolve().parents[2] / "docs" / "r.md"
# blocks of code, without those that make and choose an environment
BLOCK = re.compile(r"^```r\n(?!# once|# each session)(.*?)^```", re.MULTILINE | re.DOTALL)
SECONDS = 300  # longest time of a script, with the start of Python in R

# `ccp` and `seurat` of the page
OBJECTS = """
has <- function(package) requireNamespace(package, quietly = TRUE)
set.seed(1)
pdf(NULL)  # pictures are drawn, and kept nowhere
d <- cbind(matrix(rnorm(60, 0), 6), matrix(rnorm(60, 3), 6), matrix(rnorm(60, 6), 6))
colnames(d) <- paste0("sample", 1:30)
if (has("ConsensusClusterPlus")) {
  ccp <- suppressMessages(ConsensusClusterPlus::ConsensusClusterPlus(d, maxK = 4, reps = 20, seed = 1))
} else {
  of_k <- function(k) list(consensusClass = setNames(cutree(hclust(dist(t(d))), k), colnames(d)))
  ccp <- c(list(matrix("")), lapply(2:4, of_k))
}
cells <- paste0("cell", 1:8)
meta <- data.frame(
  RNA_snn_res.0.4 = factor(c(0, 0, 0, 0, 1, 1, 1, 1)),
  RNA_snn_res.0.8 = factor(c(0, 0, 0, 0, 1, 1, 2, 2)),
  RNA_snn_res.1.2 = factor(c(0, 0, 3, 3, 1, 1, 2, 2)),
  manual = factor(c("T", "T", "B", "B", "NK", "NK", NA, NA)),
  singler = c("T", "B", "B", "B", "NK", "T", "unassigned", "NK"),
  azimuth = factor(c("T", "T", "B", "NK", "NK", NA, "unknown", "NK")),
  row.names = cells
)
if (has("SeuratObject")) {
  counts <- Matrix::Matrix(matrix(1, 2, 8, dimnames = list(c("g1", "g2"), cells)), sparse = TRUE)
  seurat <- SeuratObject::CreateSeuratObject(counts = counts, meta.data = meta)
} else {
  setClass("Seurat", representation(meta.data = "data.frame"))
  seurat <- new("Seurat", meta.data = meta)
}
"""

# each result in a file of its own, for the comparison in Python
RESULTS = """
write.csv(found, "of_command.csv")
write.csv(data.frame(consensus_of_factors, confidence_of_factors, doubtful), "of_factors.csv")
write.csv(data.frame(consensus), "of_ccp.csv")
write.csv(as.data.frame(classes, row.names = samples), "classes.csv")
write.csv(seurat@meta.data, "of_seurat.csv")
write.csv(agreement, "agreement.csv")
write.csv(data.frame(partition, radius, farthest), "of_draws.csv")
write.csv(as.matrix(cophenetic(as.dendrogram(tree)))[rownames(labels), rownames(labels)], "cophenetic.csv")
stopifnot(is.factor(seurat@meta.data$consensus))
"""


@cache
def why_no_r():
    """Return the reason why the code of the page cannot run here, or None."""
    if (rscript := shutil.which("Rscript")) is None:
        return "Rscript is not installed"
    command = [rscript, "-e", "library(reticulate)"]
    if subprocess.run(command, capture_output=True, timeout=SECONDS, check=False).returncode:
        return "R has no package reticulate"
    return None


@pytest.fixture
def run_page(tmp_path):
    """Run the code of the page in a folder, and return a function that reads the written tables there."""
    if (why := why_no_r()) is not None:
        pytest.skip(why)
    blocks = BLOCK.findall(PAGE.read_text())
    kept = "consensus_of_factors <- consensus\nconfidence_of_factors <- confidence\n"
    code = "\n".join([OBJECTS, *blocks[:3], kept, *blocks[3:], RESULTS])
    (tmp_path / "page.R").write_text(code)
    home = os.environ | {
        "RETICULATE_PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(PAGE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    command = ["Rscript", "--vanilla", "page.R"]
    done = subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr + done.stdout

    def table(name):
        with open(tmp_path / name, newline="") as file:
            head, *rows = csv.reader(file)
        return [row[0] for row in rows], {title: [row[m] for row in rows] for m, title in enumerate(head) if m}

    return table


def clusters(labels):
    """Return labels as the page writes them: from 1 on, and NA below 0."""
    return ["NA" if label < 0 else str(label + 1) for label in labels.tolist()]


def test_the_page_gives_the_results_of_python(run_page):
    labels = [list("aaabbb"), [1, 1, 2, 3, 3, None], list("xxxxyy")]
    est = ge.LWEA(2).fit(labels)
    ids, found = run_page("of_factors.csv")
    assert ids == [f"object{i}" for i in range(1, 7)]
    assert found["consensus_of_factors"] == clusters(est.labels_)
    assert list(map(float, found["confidence_of_factors"])) == pytest.approx(est.confidence_.tolist())
    assert found["doubtful"] == clusters(est.confident_labels(0.7))
    ids, found = run_page("of_command.csv")
    assert ids == [f"object{i}" for i in range(1, 7)]
    assert found["label"] == list(map(str, est.labels_.tolist()))

    _, found = run_page("cophenetic.csv")
    heights = squareform(cophenet(est.linkage_matrix()))
    np.testing.assert_allclose([list(map(float, row)) for row in found.values()], heights, atol=1e-12)

    samples, classes = run_page("classes.csv")
    est = ge.LWEA(3).fit([list(map(int, column)) for column in classes.values()])
    ids, found = run_page("of_ccp.csv")
    assert ids == samples == [f"sample{i}" for i in range(1, 31)]
    assert found["consensus"] == clusters(est.labels_)

    _, found = run_page("of_draws.csv")
    draws = [[1, 1, 1, 2, 2, 2], [1, 1, 2, 2, 2, 2], [1, 1, 1, 2, 2, 2], [1, 1, 1, 2, 3, 3]]
    est = ge.Median(loss="vi").fit(draws)
    ball = ge.evidence.credible_ball(draws, est.labels_)
    assert found["partition"] == clusters(est.labels_)
    assert list(map(float, found["radius"])) == pytest.approx([ball.radius] * 6)
    assert list(map(int, found["farthest"])) == draws[ball.horizontal.draws[0]]

    cells, meta = run_page("of_seurat.csv")
    assert cells == [f"cell{i}" for i in range(1, 9)]
    est = ge.LWEA(2).fit([list(map(int, meta[name])) for name in meta if "_snn_res" in name])
    assert meta["consensus"] == clusters(est.labels_)
    assert list(map(float, meta["confidence"])) == pytest.approx(est.confidence_.tolist())
    assert meta["cell_type"] == ["T", "T", "B", "B", "NK", "Unknown", "Unknown", "NK"]
    annotators, agreement = run_page("agreement.csv")
    assert annotators == ["manual", "singler", "azimuth"]
    assert agreement["NK"] == ["1", "1", "0.666666666666667"]


def test_the_page_tells_what_it_defines():
    code = "\n".join(BLOCK.findall(PAGE.read_text()))
    for name in set(re.findall(r"gpuens\$(\w+)", code)):
        assert hasattr(ge, name)
