"""The examples of docs/examples run and draw their pictures, and the statements in their texts fit the results."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import gpuens as ge

EXAMPLES = {path.stem: path for path in sorted(Path(__file__).parents[2].glob("docs/examples/*.py"))}


def annotators(found):
    assert found["right"] > max(found["single"].values())
    assert found["accuracy"][-1] > found["accuracy"][0] + 0.1
    assert found["named"][-1] < found["named"][0]


def documents(found):
    assert found["found"] > max(found["members"])


def graph(found):
    assert found["of_ring"] == 1.0 > max(found["of_seeds"]) + 0.2
    assert found["ring"].agreement < 0.7 < 1.0 == found["first_levels"].agreement
    assert found["consensus"] > found["single"] + 0.1 > found["last"] + 0.2
    assert max(found["ari"]) - 0.05 < found["consensus"]  # the default threshold is near the best
    assert found["noise"].agreement < 0.2
    assert found["noise"].n_clusters > 0.9 * found["n"] > 2 * found["of_noise"] > 1000


def image_segmentation(found):
    assert found["pieces"][1] == found["k"] < found["pieces"][0] / 5
    inside = found["apart"][~found["border"]].mean()
    assert found["apart"][found["border"]].mean() > 4 * inside


def tissue(found):
    assert found["of_domains"] > 0.95 > found["of_alone"] + 0.05 > max(found["members"]) + 0.3
    doubt, at_border = found["doubt"], found["at_border"]
    assert doubt[at_border].mean() > 5 * doubt[~at_border].mean()


def citations(found):
    assert found["of_domains"] > 0.9 > found["of_alone"] + 0.5
    domains, votes = found["by_share"].values()
    assert domains[0] > 0.95 > found["of_alone"] > domains[-1]  # the text says that neighbours harm at the right end
    assert all(one > other for one, other in zip(domains, votes, strict=True))


def owners(found):
    seen, right = found["seen"][found["someone"]], found["kind"][found["someone"]]
    accuracies = [ge.metrics.accuracy(found["est"].labels_[seen == n], right[seen == n]) for n in (1, 2, 3)]
    assert accuracies == sorted(accuracies)
    assert accuracies[0] > 0.8


def categorical(found):
    assert (found["comparison"].table["accuracy"] > 0.99).all()
    assert found["choice"].suggested == 2
    assert found["choice"].by_criterion["mean_silhouette"] == found["n_species"]


def single_cell(found):
    assert found["found"] > np.mean(found["members"]) + 0.1
    margin = found["adata"].obs["consensus_margin"]
    assert margin.min() < 0.5 < margin.median()


def which_resolution(found):
    assert (found["choice"].suggested, found["finer"].suggested) == (4, 11)
    assert next(iter(found["n_clusters"].values())) == 4
    assert min(list(found["stability"].values())[:5]) > 0.95 > found["stability"][4.0]
    assert found["between"][:3, :3].min() > 0.75 < found["between"][3:, 3:].min() + 0.01
    assert found["between"][:3, 3:].max() < 0.6
    assert found["found"] > 0.8 > max(list(found["single"].values())[:3])


def any_shape(found):
    assert all(consensus > 0.98 and plain < 0.5 for plain, consensus in found["scores"].values())


def how_many(found):
    assert found["choice"].suggested == 6
    assert 4 in found["choice"].runners_up
    assert found["choice"].table["silhouette"][6] > 0.9 > found["choice"].table["silhouette"][8]
    assert "no structure" in found["none"].caveats[0]


def without_k(found):
    numbers = {loss: est.n_clusters_ for loss, est in found["medians"].items()}
    assert numbers == {"binder": 4, "vi": 3, "omari": 3}
    assert ge.metrics.accuracy(found["est"].labels_, found["group"]) > 0.9


def how_sure(found):
    assert found["accuracies"][4] > found["accuracies"][-1] + 0.05


def missing_labels(found):
    assert all(scores[1] > 0.95 > scores[-1] for scores in found["found"].values())


def weighted(found):
    assert found["right"][1] > found["right"][0] + 0.15
    assert min(found["table"].pop("lwgp")) > 0.97  # LWGP is as right by contigs
    assert all(bases > contigs + 0.02 for contigs, bases in found["table"].values())
    assert found["bases"][found["unsure"]].mean() < found["bases"].mean() / 3


def joined(found):
    scores, covered = found["scores"], found["covered"]
    assert scores.pop("consensus") > max(scores.values()) + 0.02
    assert covered.pop("consensus") > max(covered.values()) + 200
    assert found["ari_by_n"] == sorted(found["ari_by_n"])


def a_million(found):
    assert min(found["scores"].values()) > 0.99


def which_method(found):
    assert (found["comparison"].table["accuracy"] > 0.85).all()


def modes(found):
    sizes = [len(mode.members) for mode in found["found"].modes]
    assert len(sizes) == 2
    assert min(sizes) > 25
    stories = [
        ge.metrics.accuracy(mode.consensus, found["X"][:, side] > 1.3) for side, mode in enumerate(found["found"].modes)
    ]
    assert min(stories) > 0.98


def aligned(found):
    assert found["found"].names[:3] == ["0", "1", "2"]
    assert {len(codes) for codes in found["found"].clusters} == {2, 3, 4}
    assert np.mean(found["same"] == 1) > 0.9


def tutorial(found):
    assert found["choice"].suggested == 3
    assert found["of_wrong"] < found["of_right"] - 0.15
    assert found["right"] > 0.75


def own_method(found):
    joined, anmi = found["joined"], found["comparison"].table["anmi"]
    assert (found["named"] == joined.labels_).all()
    assert (joined.predict(found["ensemble"]) == joined.labels_).mean() > 0.9
    assert anmi.idxmin() == "rare-centres"  # the text says "not better"
    assert anmi.min() > 0.75


def bad_member(found):
    assert found["suspects"] == ["sorted", "one pixel"]
    unlike, copies, weighted = found["found"].values()
    assert min(unlike) > 0.7
    assert max(copies[-1], weighted[-1]) < 0.2
    assert found["mended"] > 0.7


def new_objects(found):
    assert found["accuracy_new"] > found["accuracy_today"] - 0.03
    assert found["same"] > 0.9
    sixes = ~found["ordinary"]
    below = found["confidence"] < found["unsure"]
    assert below[~sixes].mean() < 0.15
    assert below[sixes].mean() > 0.4
    assert min(found["accuracies"]) > found["accuracies"][0] - 0.03


def disagreement(found):
    table, stability = found["comparison"].table, found["repeated"]
    assert table["anmi"]["kcc"] > table["anmi"]["lwgp"]
    assert table["silhouette"]["lwgp"] > table["silhouette"]["kcc"]
    assert (np.sort(found["evidence"]["lwgp"].clusters.stability) > 0.7).tolist() == [False, True, True, True]
    assert found["evidence"]["kcc"].clusters.stability.max() < 0.5
    assert stability["lwgp"] > 0.9 > 0.5 > stability["kcc"]


CHECKS = (
    *(a_million, aligned, annotators, any_shape, bad_member, categorical, citations, disagreement, documents, graph),
    *(how_many, how_sure, image_segmentation, joined, missing_labels, modes, new_objects, own_method, owners),
    *(single_cell, tissue, tutorial, weighted, which_method, which_resolution, without_k),
)
HOLDS = {check.__name__: check for check in CHECKS}


@pytest.mark.thorough
@pytest.mark.parametrize("name", EXAMPLES)
def test_what_an_example_says_holds(name, own_registry, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot", reason="pictures need matplotlib")
    if name in ("single_cell", "which_resolution"):
        pytest.importorskip("anndata", reason="cells come in an AnnData")
    if name in ("single_cell", "which_resolution"):
        pytest.importorskip("igraph", reason="Leiden is igraph's")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    plt.switch_backend("Agg")
    plt.close("all")
    found = runpy.run_path(str(EXAMPLES[name]))
    assert plt.get_fignums()
    assert capsys.readouterr().out
    plt.close("all")
    HOLDS[name](found)
