"""Consensus of the cells of an AnnData: results added to the object in memory, and to a copy of its file."""

import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from conftest import refused, structured_labels

import gpuens as ge
from gpuens import cli
from gpuens.runtime import installing

anndata = pytest.importorskip("anndata")

LABELS = structured_labels(90, 4, 3, noise=0.1, seed=1)[0]
NAMES = [f"leiden_{m}" for m in range(4)]


@pytest.fixture
def adata():
    obs = pd.DataFrame(LABELS, columns=NAMES, index=[f"c{i}" for i in range(90)]).astype("category")
    obs = obs.assign(depth=0.5, cell=pd.Categorical([f"b{i}" for i in range(90)]))
    X = np.random.default_rng(0).standard_normal((90, 3)).astype(np.float32)
    return anndata.AnnData(X, obs=obs, obsm={"X_pca": X[:, :2], "labels": LABELS}, uns={"before": {"params": 1}})


def same(one, other):
    """Check that two AnnData objects are equal."""
    pd.testing.assert_frame_equal(one.obs, other.obs)
    np.testing.assert_array_equal(one.X, other.X)
    assert one.obsm.keys() == other.obsm.keys()
    for key, values in one.obsm.items():
        np.testing.assert_array_equal(values, other.obsm[key])
    assert one.uns.keys() == other.uns.keys()


def test_what_is_added(adata):
    before = adata.copy()
    assert ge.sc.consensus(adata, "leiden_*", n_clusters=3, method="em", random_state=1) is None
    est = ge.EM(3, random_state=1).fit(LABELS)
    assert adata.obs.consensus.cat.categories.tolist() == ["0", "1", "2"]
    assert adata.obs.consensus.value_counts(sort=False).is_monotonic_decreasing
    assert adata.obs.consensus.astype(int).tolist() == est.labels_.tolist()
    np.testing.assert_array_equal(adata.obs.consensus_certainty, est.evidence().objects.certainty)
    np.testing.assert_array_equal(adata.obs.consensus_confidence, est.confidence_)
    np.testing.assert_array_equal(adata.obs.consensus_margin, est.evidence().objects.margin)
    np.testing.assert_array_equal(adata.obsm["consensus_membership"], est.membership_)
    about = adata.uns["consensus"]
    assert about["params"]["method"] == "em"
    assert (about["params"]["random_state"], about["params"]["clusterings"]) == (1, NAMES)
    assert about["anmi"] == est.evidence().agreement.anmi
    added = {"consensus", "consensus_certainty", "consensus_confidence", "consensus_margin"}
    pd.testing.assert_frame_equal(adata.obs.drop(columns=list(added)), before.obs)
    assert [set(adata.obs) - set(before.obs), set(adata.obsm) - set(before.obsm)] == [added, {"consensus_membership"}]


def test_cells_of_no_cluster_are_missing(adata):
    """HDBSCAN marks noise by the category "-1"; its other categories are numbers."""
    noisy = np.where(np.random.default_rng(0).random(LABELS.shape) < 0.3, -1, LABELS)
    adata.obs[NAMES] = pd.DataFrame(noisy.astype(str), columns=NAMES, index=adata.obs_names).astype("category")
    ge.sc.consensus(adata, "leiden_*", n_clusters=3, drop_unlabelled=True)
    labelled = (noisy >= 0).any(axis=1)
    expected = np.full(90, -1)
    expected[labelled] = ge.consensus(noisy[labelled], 3)
    assert adata.obs.consensus.cat.codes.tolist() == expected.tolist()
    adata.obs["leiden_0"] = adata.obs["leiden_0"].cat.rename_categories({"0": "T cell"})
    with pytest.warns(UserWarning, match="labels: '-1' in 'leiden_0' count as clusters"):
        ge.sc.consensus(adata, "leiden_*", n_clusters=3)


def test_a_copy_leaves_the_original_alone(adata):
    before = adata.copy()
    found = ge.sc.consensus(adata, [0, "leiden_1", "leiden_3"], n_clusters=3, key_added="mine", copy=True)
    same(adata, before)
    expected = ge.consensus(LABELS[:, [0, 1, 3]], 3)
    assert found.obs.mine.astype(int).tolist() == expected.tolist()
    assert "mine_membership" not in found.obsm


def test_keys_are_those_like_labels_but_for_ids_and_results(adata):
    with pytest.warns(UserWarning, match="adata.obs: 'cell' has a different value for each of the 90 objects"):
        ge.sc.consensus(adata, n_clusters=3)
    del adata.obs["cell"]
    ge.sc.consensus(adata, n_clusters=3, key_added="again")
    assert adata.uns["again"]["params"]["clusterings"] == NAMES
    assert adata.obs.again.tolist() == adata.obs.consensus.tolist()
    ge.sc.consensus(adata, obsm_key="labels", n_clusters=3, key_added="third")
    assert adata.obs.third.tolist() == adata.obs.consensus.tolist()
    adata.obs["batch"] = pd.Categorical(np.arange(90) % 2)
    with pytest.warns(
        UserWarning, match=r"adata.obs: 'batch' \(by its name\) is left out, .* name the clusterings in keys"
    ):
        ge.sc.consensus(adata, n_clusters=3, key_added="fourth")
    assert adata.uns["fourth"]["params"]["clusterings"] == NAMES
    assert adata.obs.fourth.tolist() == adata.obs.consensus.tolist()
    # the call names the columns, so that there is no warning
    ge.sc.consensus(adata, [*NAMES, "batch"], n_clusters=3, key_added="fifth")
    assert adata.uns["fifth"]["params"]["clusterings"] == [*NAMES, "batch"]
    adata.obsm["table"] = adata.obs[[*NAMES, "batch"]]
    with pytest.warns(UserWarning, match=r"adata.obsm\['table'\]: 'batch'"):
        ge.sc.consensus(adata, obsm_key="table", n_clusters=3, key_added="sixth")
    assert adata.obs.sixth.tolist() == adata.obs.consensus.tolist()


def test_cells_without_labels_are_missing(adata):
    adata.obs.loc["c7", NAMES] = np.nan
    refused(lambda: ge.sc.consensus(adata, "leiden_*", n_clusters=3), ValueError, "7")
    ge.sc.consensus(adata, "leiden_*", n_clusters=3, method="em", drop_unlabelled=True)
    assert adata.obs.index[adata.obs.consensus.isna()].tolist() == ["c7"]
    assert np.isnan(adata.obsm["consensus_membership"][7]).all()
    expected = ge.consensus(np.delete(LABELS, 7, axis=0), 3, method="em")
    assert adata.obs.consensus.drop("c7").astype(int).tolist() == expected.tolist()


@pytest.fixture
def tissue(adata):
    """Provide the cells with places on two slides and their graph."""
    places = np.random.default_rng(1).random((90, 2))
    adata.obsm["spatial"], adata.obs["slide"] = places, pd.Categorical(["left", "right"] * 45)
    adata.obsp["near"] = ge.Graph.neighbors(places, 4).matrix()
    return adata


def test_domains_of_cells_by_their_graph(tissue):
    ge.sc.consensus(tissue, "leiden_*", n_clusters=3, graph="near")
    est = ge.Spatial(3).fit(LABELS, graph=tissue.obsp["near"])
    assert tissue.obs.consensus.astype(int).tolist() == est.labels_.tolist()
    np.testing.assert_array_equal(tissue.obsm["consensus_membership"], est.membership_)
    about = tissue.uns["consensus"]
    assert (about["potts"], about["effective_members"]) == (est.potts_, est.effective_members_)
    assert (about["params"]["graph"], about["params"]["method"], about["params"]["steps"]) == ("near", "qmi", 4)


@pytest.mark.parametrize("named", [True, False])
def test_connected_clusters_of_cells_by_their_places(tissue, named):
    places, slides = tissue.obsm["spatial"], tissue.obs["slide"]
    given = {"coordinates": "spatial", "groups": "slide"} if named else {"coordinates": places, "groups": slides}
    ge.sc.consensus(tissue, "leiden_*", n_clusters=3, method="eac", **given)
    graph = ge.Graph.neighbors(places, groups=slides.to_numpy())
    assert tissue.obs.consensus.astype(int).tolist() == ge.EAC(3).fit(LABELS, graph=graph).labels_.tolist()
    assert {"coordinates", "groups"} & tissue.uns["consensus"]["params"].keys() == (set(given) if named else set())


def test_cells_without_labels_have_no_edges(tissue):
    tissue.obs.loc[["c3", "c50"], NAMES] = np.nan
    ge.sc.consensus(tissue, "leiden_*", n_clusters=3, graph="near", drop_unlabelled=True)
    kept = ~tissue.obs_names.isin(["c3", "c50"])
    est = ge.Spatial(3).fit(LABELS[kept], graph=ge.Graph.of(tissue.obsp["near"]).subgraph(kept))
    assert tissue.obs.consensus[kept].astype(int).tolist() == est.labels_.tolist()
    assert tissue.obs.consensus[~kept].isna().all()


def test_cells_without_any_edge_have_no_membership(tissue):
    tissue.obsp["near"] = tissue.obsp["near"] * 0
    ge.sc.consensus(tissue, "leiden_*", n_clusters=3, graph="near")
    assert tissue.obs.consensus.astype(int).tolist() == ge.QMI(3).fit(LABELS).labels_.tolist()
    assert "consensus_membership" not in tissue.obsm


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        ({"graph": "far"}, ValueError, "graph='far' names nothing in obsp, which has 'near'."),
        ({"coordinates": "X_umap"}, ValueError, "coordinates='X_umap' names nothing in obsm"),
        ({"coordinates": "spatial", "groups": "batch"}, ValueError, "groups='batch' names nothing in obs"),
        ({"groups": "slide"}, TypeError, "groups were given without coordinates"),
        ({"graph": "near", "coordinates": "spatial"}, TypeError, "graph and coordinates were given"),
        ({"graph": "near", "use_rep": "X"}, ValueError, "method 'qmi' uses only labels"),
        ({"graph": "near", "theta": 1}, TypeError, "'theta' is no parameter of method 'qmi'"),
    ],
)
def test_neighbours_that_are_not_there_are_refused(tissue, given, kind, sentence):
    before = tissue.copy()
    refused(lambda: ge.sc.consensus(tissue, "leiden_*", n_clusters=3, **given), kind, sentence)
    same(tissue, before)


def test_methods_by_features_get_a_representation(adata):
    ge.sc.consensus(adata, "leiden_*", n_clusters=3, method="tome", use_rep="X_pca")
    expected = ge.consensus(LABELS, 3, method="tome", features=adata.obsm["X_pca"])
    assert adata.obs.consensus.astype(int).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        ({"keys": "nothing_*"}, ValueError, "keys: there is no column 'nothing_*'; there are 'leiden_0'"),
        ({"keys": "leiden_*", "obsm_key": "labels"}, ValueError, "give either columns of obs or"),
        ({"obsm_key": "X_umap"}, ValueError, "obsm_key='X_umap' names nothing in obsm, which has 'X_pca'"),
        ({"obsm_key": "X_pca"}, ValueError, "not whole numbers"),
        ({"keys": "leiden_*", "key_added": "leiden_2"}, ValueError, "is one of the base clusterings"),
        (
            {"keys": ["leiden_0", "mine_margin"], "key_added": "mine"},
            ValueError,
            "would replace 'mine_margin', which is",
        ),
        ({"keys": "leiden_*", "key_added": "barcode"}, ValueError, "would replace the names of the cells, 'barcode'"),
        ({"keys": "leiden_*", "key_added": "_index"}, ValueError, "would replace the names of the cells, '_index'"),
        ({"keys": "leiden_*", "key_added": "a/b"}, ValueError, "key_added must be a name without '/'"),
        ({"keys": "leiden_*", "method": "tome"}, ValueError, "use_rep=None, but method 'tome' uses features"),
        ({"keys": "leiden_*", "use_rep": "X"}, ValueError, "uses only labels; leave it out"),
        ({"keys": "leiden_*", "resolution": 1}, TypeError, "'resolution' is no parameter of method 'lwgp'"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_added(adata, given, kind, sentence):
    adata.obs["mine_margin"] = adata.obs.leiden_1
    adata.obs.index.name = "barcode"
    before = adata.copy()
    refused(lambda: ge.sc.consensus(adata, n_clusters=3, **given), kind, sentence)
    same(adata, before)


def test_other_data_and_no_anndata(monkeypatch):
    refused(lambda: ge.sc.consensus(LABELS), TypeError, "adata must be an AnnData, not ndarray")
    monkeypatch.setitem(sys.modules, "anndata", None)
    refused(lambda: ge.sc.consensus(LABELS), ImportError, "needs anndata", installing.command("io"))


def test_data_backed_by_a_file(adata, tmp_path):
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    given = {"keys": "leiden_*", "n_clusters": np.int64(3)}
    refused(lambda: ge.sc.consensus(backed, **given, copy=True), ValueError, "is backed by its file", "to_memory")
    ge.sc.consensus(backed, **given)
    ge.sc.consensus(adata, **given)
    assert backed.obs.consensus.tolist() == adata.obs.consensus.tolist()
    assert type(adata.uns["consensus"]["params"]["n_clusters"]) is int


@pytest.mark.parametrize("name", ["_index", "barcode"])
def test_a_copy_keeps_the_names_of_the_cells(adata, name, tmp_path, monkeypatch, capsys):
    h5py = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    adata.obs.index.name = None if name == "_index" else name
    adata.write_h5ad("cells.h5ad")
    with h5py.File("cells.h5ad", "r+") as file:  # change the file to the form that other programs write
        del file["uns"], file["obsm"]
    run = "run cells.h5ad --method em -k 3 --quiet --columns leiden_* -o out.h5ad --key-added".split()  # noqa: SIM905
    assert cli.main([*run, name]) == 2
    assert f"would replace the names of the cells, '{name}'" in capsys.readouterr().err
    assert cli.main([*run, "mine"]) == 0
    found = anndata.read_h5ad("out.h5ad")
    assert found.obs_names.equals(adata.obs_names)
    assert found.obsm["mine_membership"].shape == (90, 3)


def test_a_run_adds_the_same_to_a_copy_of_the_file(adata, tmp_path, monkeypatch, capsys):
    h5py = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    adata.obs = pd.DataFrame(LABELS, columns=NAMES, index=adata.obs_names).assign(depth=0.5)
    adata.obs.loc["c7", NAMES] = -1
    adata.write_h5ad("cells.h5ad")
    with h5py.File("cells.h5ad", "r+") as file:  # categories in the format of anndata before 0.8
        file["obs"].attrs["encoding-version"] = "0.1.0"
    options = "-k 3 --method em --seed 1 --drop-unlabelled --quiet"
    assert cli.main(f"run cells.h5ad {options} --columns leiden_* -o out.h5ad".split()) == 0
    ge.sc.consensus(adata, "leiden_*", n_clusters=3, method="em", random_state=1, drop_unlabelled=True)
    found = anndata.read_h5ad("out.h5ad")
    same(found, adata)
    assert found.uns["consensus"]["params"].keys() == adata.uns["consensus"]["params"].keys()
    assert found.uns["consensus"]["anmi"] == adata.uns["consensus"]["anmi"]

    assert cli.main(f"run out.h5ad {options} --key-added mine -o next.h5ad".split()) == 0
    again = anndata.read_h5ad("next.h5ad")
    assert again.uns["mine"]["params"]["clusterings"].tolist() == NAMES
    assert again.obs.mine.tolist() == found.obs.consensus.tolist()
    for command, sentence in (
        ("cells.h5ad --key-added leiden_1 -o other.h5ad --columns leiden_*", "is one of the base clusterings"),
        ("cells.h5ad --key-added mine -o other.npy", "--key-added=mine is a name for labels in an h5ad file"),
    ):
        assert cli.main(["run", *command.split(), *options.split()]) > 1
        assert sentence in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("cells.h5ad", "next.h5ad", "next.h5ad.json", "out.h5ad", "out.h5ad.json")
    ]


# --- the number of clusters -------------------------------------------------------------------------------------------


def test_a_choice_goes_into_uns(adata, tmp_path):
    found = ge.sc.choose_k(adata, "leiden_*", ks=range(2, 6))
    expected = ge.choose_k(LABELS, ks=range(2, 6))
    assert found.to_dict() == expected.to_dict()
    adata.write_h5ad(tmp_path / "cells.h5ad")
    kept = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["choose_k"]
    assert kept["suggested"] == expected.suggested
    assert kept["reasons"] == {str(k): why for k, why in expected.reasons.items()}
    np.testing.assert_allclose(kept["table"]["support"], expected.table["support"])
    assert kept["table"]["k"].tolist() == [2, 3, 4, 5]
    assert list(kept["params"]["clusterings"]) == NAMES
    del adata.obs["cell"]
    assert ge.sc.choose_k(adata, ks=[2, 3], key_added="again").to_dict() == ge.choose_k(LABELS, ks=[2, 3]).to_dict()
    by_key = ge.sc.choose_k(adata, obsm_key="labels", ks=[2, 3])
    assert by_key.suggested == adata.uns["again"]["suggested"]


def test_a_choice_by_features_of_cells(adata):
    found = ge.sc.choose_k(adata, use_rep="X_pca", ks=[2, 3], n_clusterings=5, random_state=1)
    expected = ge.choose_k(features=adata.obsm["X_pca"], ks=[2, 3], n_clusterings=5, random_state=1)
    assert found.to_dict() == expected.to_dict()
    assert adata.uns["choose_k"]["params"]["use_rep"] == "X_pca"


def test_a_choice_refuses(adata):
    both = partial(ge.sc.choose_k, adata, "leiden_*", use_rep="X_pca")
    refused(both, ValueError, "use_rep='X_pca'", "give either features, or")
    refused(lambda: ge.sc.choose_k(adata, "leiden_*", obsm_key="labels"), ValueError, "give either columns of obs or")
    refused(lambda: ge.sc.choose_k(adata, use_rep="X_none"), ValueError, "X_none")
    refused(lambda: ge.sc.choose_k(LABELS), TypeError, "AnnData")
    refused(lambda: ge.sc.choose_k(adata, "leiden_*", key_added="a/b"), ValueError, "a/b")


# --- an embedding -----------------------------------------------------------------------------------------------------


@pytest.fixture
def drawn(adata):
    pytest.importorskip("matplotlib")
    ge.sc.consensus(adata, "leiden_*", n_clusters=3)
    adata.obs.loc["c7", "consensus"] = np.nan
    adata.obsm["X_umap"] = np.arange(180.0).reshape(90, 2)
    return adata


def test_cells_are_drawn_where_the_embedding_has_them(drawn):
    ax = ge.plotting.embedding(drawn)
    (points,) = ax.collections
    np.testing.assert_array_equal(np.sort(points.get_offsets()[:, 0]), drawn.obsm["X_umap"][:, 0])
    colors = {
        tuple(place): tuple(color) for place, color in zip(points.get_offsets(), points.get_facecolors(), strict=True)
    }
    by_category = {}
    for name, place in zip(drawn.obs.consensus, drawn.obsm["X_umap"], strict=True):
        by_category.setdefault(name, set()).add(colors[tuple(place)])
    assert [len(of_one) for of_one in by_category.values()] == [1] * 4
    assert len(set.union(*by_category.values())) == 4
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2", "no label"]
    assert {text.get_text() for text in ax.texts} <= {"0", "1", "2"}
    assert (ax.get_aspect(), ax.get_xlabel(), ax.get_ylabel()) == (1.0, "UMAP 1", "UMAP 2")
    assert ax.get_title() == "consensus: 3 groups of 90 cells"
    ax.figure.canvas.draw()


@pytest.mark.parametrize("n", [1, 6, 7, 20, 21, 90])
def test_each_cluster_of_cells_has_a_colour_of_its_own(drawn, n):
    drawn.obs["many"] = pd.Categorical([f"{i % n}" for i in range(90)])
    (points,) = ge.plotting.embedding(drawn, "many").collections
    assert len(np.unique(points.get_facecolors(), axis=0)) == n


def test_numbers_of_cells_are_a_scale(drawn):
    from matplotlib.figure import Figure

    certainty = drawn.obs.consensus_certainty.to_numpy().copy()
    certainty[7] = 0.0  # one extreme cell does not widen the scale
    drawn.obs["certainty"] = certainty
    ax = ge.plotting.embedding(drawn, "certainty", basis="X_pca", ax=Figure().subplots())
    (points,) = ax.collections
    assert np.sort(points.get_array()).tolist() == sorted(certainty)
    assert points.get_clim() == pytest.approx(np.quantile(certainty, [0.02, 0.98]))
    assert points.get_clim()[0] > 0.1
    assert len(ax.figure.axes) == 2
    assert not ax.texts


def test_colours_of_scanpy_are_kept(drawn):
    from matplotlib.colors import to_rgb

    drawn.uns["consensus_colors"] = ["#ff0000", "#00ff00", "#0000ff"]
    lines = ge.plotting.embedding(drawn).get_legend().get_lines()
    assert [to_rgb(line.get_color()) for line in lines[:3]] == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


def test_several_columns_have_a_panel_each(drawn):
    panels = ge.plotting.embedding(drawn, ["consensus", "consensus_certainty"], s=4)
    assert [panel.collections[0].get_sizes().tolist() for panel in panels] == [[4], [4]]
    assert panels[1].get_title().startswith("Median ")
    refused(lambda: ge.plotting.embedding(drawn, ["consensus"], ax=panels[0]), ValueError, "color", "1 columns")
    refused(lambda: ge.plotting.embedding(drawn, []), ValueError, "color", "0 columns")
    refused(lambda: ge.plotting.embedding(drawn, s=0), ValueError, "s must be")


def test_a_tissue_has_its_first_row_at_the_top_and_no_names_on_it(drawn):
    from matplotlib.figure import Figure

    drawn.obsm["spatial"] = drawn.obsm["X_umap"]
    ax = ge.plotting.embedding(drawn, basis="spatial")
    assert ax.yaxis_inverted()
    assert not ax.texts
    assert not ge.plotting.embedding(drawn, ax=Figure().subplots()).yaxis_inverted()


def test_many_cells_are_some(drawn, sizes):
    sizes("plotting.places", MOST_POINTS=40)
    assert len(ge.plotting.embedding(drawn).collections[0].get_offsets()) == 40


def test_an_embedding_refuses(drawn):
    refused(lambda: ge.plotting.embedding(drawn, "nothing"), ValueError, "color='nothing'")
    refused(lambda: ge.plotting.embedding(drawn, basis="X_none"), ValueError, "X_none", "X_pca")
    refused(lambda: ge.plotting.embedding(LABELS), TypeError, "AnnData")
    del drawn.obsm["X_umap"], drawn.obsm["X_pca"]
    refused(lambda: ge.plotting.embedding(drawn), ValueError, "there is no embedding", "labels")
