"""The contents of a page beside the fit: names of clusters, columns of numbers, and embeddings of cells."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpuens import cli

pytest.importorskip("matplotlib", reason="pictures need matplotlib")
pytest.importorskip("jinja2", reason="pages need jinja2")
N = 60


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of base clusterings beside an age, the truth and a code."""
    monkeypatch.chdir(tmp_path)
    half = np.repeat([0, 1], [40, 20])
    columns = {f"run{m}": np.where(np.arange(N) == m, 1 - half, half) for m in range(4)}
    age = np.where(half == 0, 30.5, 60.5) + np.arange(N) % 3
    frame = pd.DataFrame({"id": [f"c{i}" for i in range(N)], **columns, "age": age, "truth": half})
    frame.to_csv("labels.csv", index=False)
    return frame


def page_of(line):
    assert cli.main([*line.split(), "--report", "page.html", "--quiet", "-o", "out.csv"]) == 0
    return Path("page.html").read_text()


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize("names", ["0=young,1=old", "names.csv", "names.tsv"])
def test_clusters_have_the_names_of_the_options(table, names):
    Path("names.csv").write_text("number,name\n0,young\n1,old\n")
    Path("names.tsv").write_text("0\tyoung\n1\told\n")
    page = page_of(f"run labels.csv -k 2 --columns run* --names {names}")
    assert "the largest, young, of 40" in page
    assert "<td>old</td>" in page


@pytest.mark.usefixtures("unpainted")
def test_columns_of_numbers_beside_the_clusterings_make_a_profile(table):
    page = page_of("run labels.csv -k 2 --columns run*")
    assert "What the clusters are like" in page
    heads = re.search(r'aria-label="means of the features".*?</thead>', page, re.DOTALL)[0]
    assert ">age</th>" in heads
    assert "truth" not in heads


@pytest.mark.usefixtures("unpainted")
def test_features_of_another_file_make_a_profile(table):
    pd.DataFrame({"id": table["id"][::-1], "height": 100.0 + np.arange(N)[::-1]}).to_csv("more.csv", index=False)
    page = page_of("run labels.csv -k 2 --columns run* --features more.csv")
    assert ">height</th>" in page
    assert f"{100 + np.arange(40).mean():.0f}<" in page or "120<" in page


@pytest.mark.parametrize(
    ("names", "says"), [("0=young", "--names is for the page"), ("young,old", "'young' is no number with a name")]
)
def test_names_that_mean_nothing_are_refused(table, capsys, names, says):
    report = [] if "for the page" in says else ["--report", "page.html"]
    assert cli.main(["run", "labels.csv", "-k", "2", "--names", names, *report]) == 2
    assert says in capsys.readouterr().err
    assert not Path("page.html").exists()


@pytest.mark.usefixtures("unpainted")
def test_cells_are_drawn_on_their_embeddings(table, tmp_path):
    anndata = pytest.importorskip("anndata")
    obs = table.set_index("id")[[f"run{m}" for m in range(4)]].astype("category")
    places = {"X_umap": np.random.default_rng(0).random((N, 2)), "spatial": np.random.default_rng(1).random((N, 2))}
    anndata.AnnData(np.zeros((N, 1)), obs=obs, obsm=places).write_h5ad("cells.h5ad")
    page = page_of("run cells.h5ad -k 2")
    assert "The clusters on X_umap" in page
    assert "The clusters on spatial" in page
