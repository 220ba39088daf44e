"""Neighbours on the command line and in batches: places, edges and grids, matched by name, or refused before work."""

import contextlib
import fnmatch
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import call, done  # noqa: F401
from scipy.sparse import csr_array, save_npz

import gpuens as ge

anndata = pytest.importorskip("anndata")

K, SHAPE = 3, (8, 12)
TRUTH = np.repeat(np.repeat([[0, 1, 2], [2, 0, 1]], 4, axis=0), 4, axis=1)
RNG = np.random.default_rng(0)
MAPS = np.array([np.where(RNG.random(SHAPE) < 0.25, RNG.integers(K, size=SHAPE), TRUTH) for _ in range(5)])
LABELS = MAPS.reshape(5, -1).T
PLACES = np.indices(SHAPE).reshape(2, -1).T.astype(float)
NAMES = pd.Index([f"c{i}" for i in RNG.permutation(len(LABELS))], name="cell")
SLIDES = np.where(PLACES[:, 1] < 6, "left", "right")
GRID = ge.Graph.grid(SHAPE)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write label files, and places and edges of their objects in another order, to a folder."""
    with contextlib.chdir(tmp_path_factory.mktemp("files")):
        write_files()
        return Path.cwd()


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    """Provide a working directory with a copy of the files."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_files():
    table = pd.DataFrame(LABELS, index=NAMES).add_prefix("m")
    table.to_csv("labels.csv")
    places = pd.DataFrame(PLACES, index=NAMES, columns=["y", "x"])
    table.join(places).assign(slide=SLIDES).to_csv("all.csv")
    others = places.assign(slide=SLIDES).sample(frac=1, random_state=0)
    others.to_csv("xy.csv")
    others.drop(columns="slide").to_csv("places.tsv", sep="\t")
    others.drop(columns="slide").to_parquet("places.parquet")
    edges = GRID.as_edges()
    pairs = pd.DataFrame({"a": NAMES[edges.first], "b": NAMES[edges.second]}).sample(frac=1, random_state=0)
    pairs.to_csv("edges.txt", sep=" ", header=False, index=False)
    np.save("maps.npy", MAPS)
    np.save("last.npy", np.moveaxis(MAPS, 0, -1))
    np.save("pixels.npy", LABELS)
    np.save("places.npy", PLACES)
    obs = table.assign(slide=SLIDES).astype("category")
    stored = {"obsm": {"spatial": PLACES}, "obsp": {"spatial_connectivities": GRID.matrix()}}
    anndata.AnnData(np.zeros((len(obs), 1), np.float32), obs=obs, **stored).write_h5ad("cells.h5ad")
    np.save("features.npy", np.ones((96, 5)))
    np.save("few.npy", PLACES[:9])
    save_npz("few.npz", csr_array(np.ones((9, 9))))
    others.assign(slide=others.slide.where(others.x > 0)).to_csv("gaps.csv")


def record():
    return json.loads(Path("out.npy.json").read_text())


BY_GRID = ge.Spatial(K).fit(LABELS, graph=GRID).labels_
OF_SLIDES = ge.Graph.neighbors(PLACES, 4, groups=SLIDES)


@pytest.mark.parametrize(
    ("line", "graph"),
    [
        ("maps.npy --grid 8x12", GRID),
        ("last.npy --grid 8X12", GRID),
        ("pixels.npy --grid 8x12", GRID),
        ("labels.csv --graph edges.txt", GRID),
        ("cells.h5ad --columns m* --graph spatial_connectivities", GRID),
        ("labels.csv --coordinates places.tsv", ge.Graph.neighbors(PLACES)),
        ("labels.csv --coordinates places.parquet --max-length 1.2", ge.Graph.neighbors(PLACES, max_length=1.2)),
        ("labels.csv --coordinates places.npy --by-position", ge.Graph.neighbors(PLACES)),
        ("labels.csv --coordinates xy.csv --groups-column slide --nearest 4", OF_SLIDES),
        ("labels.csv --coordinates xy.csv --coordinates-columns x", ge.Graph.neighbors(PLACES[:, 1:])),
        ("all.csv --coordinates-columns y,x --groups-column slide --nearest 4", OF_SLIDES),
        ("cells.h5ad --coordinates spatial --groups-column slide --nearest 4", OF_SLIDES),
        ("labels.csv --coordinates cells.h5ad --groups-column slide --nearest 4", OF_SLIDES),
    ],
)
def test_domains_are_those_of_the_graph_that_the_options_name(folder, done, line, graph):
    out = done(f"run {line} -k {K} -o out.npy")
    est = ge.Spatial(K).fit(LABELS, graph=graph)
    np.testing.assert_array_equal(np.load("out.npy"), est.labels_)
    n = graph.n_components
    assert f"neighbours: {graph.n_edges} edges, {n} component{'s' * (n > 1)}" in out
    said = record()
    assert (said["method"], said["n_clusterings"], said["potts"]) == ("qmi", 5, est.potts_)
    assert said["effective_members"] == est.effective_members_
    sizes = {"n_objects": graph.n_objects, "n_edges": graph.n_edges, "n_components": n}
    assert {name: said["graph"][name] for name in sizes} == sizes
    for option in [
        word for word in line.split() if word.startswith("--") and word not in ("--columns", "--by-position")
    ]:
        assert option[2:].replace("-", "_") in said["graph"]["from"]


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        ("--steps 2 --regions 20 --refine no", ge.Spatial(K, steps=2, regions=20, refine=False)),
        (
            "--method lwgp --theta 0.3 --seed 3",
            ge.Spatial(K, method=ge.LWGP(theta=0.3, random_state=3), random_state=3),
        ),
        ("--method kcc --regions none", ge.Spatial(K, method="kcc", regions=None)),
        ("--method eac", ge.EAC(K)),
        ("--method lwea --theta 0.3", ge.LWEA(K, theta=0.3)),
    ],
)
def test_options_are_those_of_domains_and_of_the_method(folder, call, options, estimator):
    assert call(f"run maps.npy --grid 8x12 -k {K} {options} -o out.npy")[0] == 0
    np.testing.assert_array_equal(np.load("out.npy"), estimator.fit(LABELS, graph=GRID).labels_)
    said = record()
    assert ("potts" in said) == getattr(estimator, "refine", False)
    if "--seed" in options:  # the seed is the method's, too
        assert (said["parameters"]["random_state"], said["parameters"]["method__random_state"]) == (3, 3)


def test_what_is_written_beside_the_labels(folder, call):
    line = f"run labels.csv --graph edges.txt -k {K} --membership --evidence --min-confidence 0.5 --report page.html"
    code, out, _ = call(line)
    assert code == 0
    est = ge.Spatial(K).fit(LABELS, graph=GRID)
    found = pd.read_csv("labels.csv.neighbors.qmi.csv", index_col="cell")
    np.testing.assert_array_equal(found.label, est.confident_labels(0.5))
    np.testing.assert_allclose(found[[f"membership_{c}" for c in range(K)]], est.membership_)
    np.testing.assert_allclose(found.confidence, est.confidence_)
    assert any(line.startswith("potts: ") for line in out)
    assert (folder / "page.html").stat().st_size


def test_the_top_of_the_tree_of_connected_clusters_is_drawn():
    ax = ge.plotting.dendrogram(ge.EAC(K).fit(LABELS, graph=GRID), p=5)
    assert sum(int(tick.get_text()) for tick in ax.get_xticklabels()) == len(LABELS)


@pytest.mark.parametrize("method", ["qmi", "eac"])
def test_a_model_labels_new_objects_by_their_labels_alone(folder, call, method):
    assert call(f"run labels.csv --graph edges.txt --method {method} -k {K} -o out.npy --model model.npz")[0] == 0
    assert call("predict model.npz labels.csv -o new.csv")[0] == 0
    est = (ge.EAC(K) if method == "eac" else ge.Spatial(K)).fit(LABELS, graph=GRID)
    np.testing.assert_array_equal(pd.read_csv("new.csv").label, est.predict(LABELS))


def test_objects_without_labels_are_left_out_of_the_graph(folder, call):
    labels = pd.read_csv("labels.csv", index_col="cell")
    unlabelled = np.arange(len(labels)) % 12 == 5  # a column of the image
    labels = labels.where(np.broadcast_to(~unlabelled[:, None], labels.shape))
    labels.to_csv("unlabelled.csv")
    code, out, _ = call(f"run unlabelled.csv --graph edges.txt --drop-unlabelled -k {K} -o out.npy")
    kept = GRID.subgraph(~unlabelled)
    assert code == 0
    assert f"neighbours: {kept.n_edges} edges, 2 components" in out
    expected = np.full(len(labels), -1)
    expected[~unlabelled] = ge.Spatial(K).fit(LABELS[~unlabelled], graph=kept).labels_
    np.testing.assert_array_equal(np.load("out.npy"), expected)


REFUSED = {
    "labels.csv --coordinates xy.csv --graph edges.txt": "--coordinates and --graph both name the neighbours; leave *",
    "maps.npy --grid 8x12 --graph edges.txt": "--graph and --grid both name the neighbours; leave one of them out.",
    "labels.csv --nearest 4": "--nearest is for objects with places; add --coordinates, or leave --nearest out.",
    "labels.csv --graph edges.txt --max-length 2": "--max-length is for objects with places; add --coordinates, *",
    "maps.npy --grid 8x12 --groups-column slide": "--groups-column is for objects with places; add --coordinates, *",
    "labels.csv --graph edges.txt --features xy.csv": "--features is not for objects with neighbours; leave it, or *",
    "labels.csv --graph edges.txt --weight-column m0": "--weight-column is not for objects with neighbours; leave *",
    "pixels.npy --grid 8x12 --scheduler threads": "--scheduler is not for objects with neighbours; leave it, *",
    "pixels.npy --grid 8x12 --chunk-rows 9": "--chunk-rows is not for objects with neighbours; leave it, or --grid*",
    "labels.csv --graph edges.txt --reduce sample:9": "--reduce is not for objects with neighbours; leave it, or *",
    "labels.csv --graph edges.txt --shared-names": "--shared-names is not for objects with neighbours; leave it, or *",
    "labels.csv --graph edges.txt --partitioner metis": "--partitioner is not for objects with neighbours; leave it, *",
    "labels.csv --coordinates xy.csv --nearest 0": "--nearest must be at least 1, but is 0.",
    "labels.csv --coordinates xy.csv --max-length 0": "--max-length must be above 0 and finite, but is 0.0.",
    "labels.csv --grid 8": "--grid must be the height and the width of the images, such as 480x320, not '8'.",
    "labels.csv --graph nowhere.txt": "path 'nowhere.txt' does not exist; check the name.",
    "labels.csv all.csv --grid 8x12": "--grid is for one file of labels; join the files first (gpuens join).",
    "labels.csv --graph edges.txt --method cspa": "method 'cspa' cannot read shares of the labels around objects; *",
    "labels.csv --graph edges.txt --method eac --linkage single": "graph was given, but EAC * does not use one; *",
    "labels.csv --graph edges.txt --theta 0.3": "--theta is no option of method 'qmi'; its options are *--steps*",
    "labels.csv --graph edges.txt --membership --refine no -o out.csv": "--membership needs a method with shares *",
    "labels.csv --graph edges.txt -o edges.txt": "* 'edges.txt' *",
    "maps.npy --grid 9x12": "labels must be 2-D, * have shape (5, 8, 12); * grid=8x12 (--grid).",
    "pixels.npy --grid 9x12": "grid 9x12 has 108 cells, but path 'pixels.npy' has 96 objects; name the height and *",
    "labels.csv --coordinates xy.csv": "coordinates must be real numbers, not of type object in column 'slide': *",
    "labels.csv --coordinates features.npy --by-position": "coordinates 'features.npy' have 5 columns; name those of *",
    "labels.csv --coordinates places.npy": "path 'labels.csv' names its objects, by 'cell', but path 'places.npy' *",
    "labels.csv --coordinates few.npy --by-position": "coordinates='few.npy' has 9 objects, but path *",
    "labels.csv --coordinates xy.csv --groups-column no": "columns: there is no column 'no'; there are *",
    "labels.csv --coordinates gaps.csv --groups-column slide": "groups have no value for object *; fill it in, or *",
    "labels.csv --graph edges.txt --by-position": "labels have no object 'c*', which the edges have; *",
    "labels.csv --graph few.npz": "graph='few.npz' has 9 objects, but path 'labels.csv' has 96; name a file of *",
    "cells.h5ad --graph near": "path 'cells.h5ad' has no graph in obsp['near']; name another entry, or *",
    "labels.csv --coordinates places.tsv --max-length 0.5 --membership -o out.csv": "--membership needs neighbours, *",
}


@pytest.mark.parametrize("line", REFUSED)
def test_contradictions_and_other_objects_are_refused_in_one_sentence(folder, call, line):
    before = sorted(path.name for path in folder.iterdir())
    code, out, err = call(f"run {line} -k {K}")
    assert (code in (2, 3), out, len(err)) == (True, [], 1), err
    wanted = REFUSED[line].replace("[", "[[]")
    assert fnmatch.fnmatchcase(err[0], f"gpuens: {wanted}"), err[0]
    assert sorted(path.name for path in folder.iterdir()) == before


# --- batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_takes_neighbours(folder):
    jobs = [
        {"id": "grid", "input": "maps.npy", "grid": "8x12", "format": "npy"},
        {"id": "edges", "input": "labels.csv", "graph": "edges.txt", "format": "npy"},
        {"id": "cells", "input": "cells.h5ad", "graph": "spatial_connectivities", "columns": ["m*"], "format": "npy"},
        {"id": "places", "input": "labels.csv", "coordinates": "xy.csv", "groups_column": "slide", "nearest": 4},
        {"id": "own", "input": "all.csv", "coordinates_columns": ["y", "x"], "method": "eac", "exclude": ["slide"]},
    ]
    manifest = folder / "jobs.json"
    manifest.write_text(json.dumps({"defaults": {"n_clusters": K, "format": "npy"}, "jobs": jobs}))
    assert "would fail" not in ge.batch.forecast(manifest, folder / "out")
    outcome = ge.batch.run(manifest, folder / "out")
    assert (outcome.done, outcome.failed) == (5, 0), outcome.jobs
    expected = {"grid": BY_GRID, "edges": BY_GRID, "cells": BY_GRID}
    expected["places"] = ge.Spatial(K).fit(LABELS, graph=OF_SLIDES).labels_
    expected["own"] = ge.EAC(K).fit(LABELS, graph=ge.Graph.neighbors(PLACES)).labels_
    for name, labels in expected.items():
        np.testing.assert_array_equal(np.load(f"out/{name}.labels.npy"), labels)
    said = json.loads((folder / "out" / "places.json").read_text())
    assert said["graph"]["from"] == {"coordinates": "xy.csv", "groups_column": "slide", "nearest": 4}
    assert said["potts"] > 0
    assert ge.batch.run(manifest, folder / "out").already == 5
    (folder / "edges.txt").write_text("c0 c1\nc1 c2\n")  # another graph makes its job run again
    assert ge.batch.run(manifest, folder / "out").done == 1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"grid": "8x12", "graph": "edges.txt"}, "graph and grid both name the neighbours"),
        ({"grid": "8x12", "reduce": "sample:9"}, "reduce is not for objects with neighbours"),
        ({"grid": "8x12", "similarity": "lwca", "partitioner": "metis"}, "similarity is not for objects with neighb"),
        ({"grid": "8"}, "grid: '8' does not match"),
        ({"grid": "8x12", "parameters": {"reduction": "sample:9"}}, "'reduction' is no parameter of method 'qmi'"),
        ({"grid": "8x12", "method": "cspa"}, "method 'cspa' cannot read shares"),
    ],
)
def test_a_batch_refuses_contradictions(folder, fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        ge.batch.load({"jobs": [{"input": "maps.npy", "n_clusters": K, **fields}]})
