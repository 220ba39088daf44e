"""The spectrum of base clusterings compared with a literal one, and each method's rule for the number of clusters."""

import json

import dask.array as da
import numpy as np
import oracles
import pytest
from conftest import METHODS, one_sentence, random_labels, refused, structured_labels

import gpuens as ge
from gpuens import cli

OWN_RULE = {"em", "median"}  # they choose the number of clusters by the likelihood and by the loss


def literal(labels, largest):
    """Return the support for 2, …, `largest` clusters, from (N, N) matrices of object pairs."""
    b = oracles.incidence(labels)
    w = oracles.eci(labels, 0.4)
    degree = (b * w).sum(axis=1)
    halves = b * w / np.sqrt(degree)[:, None] / np.sqrt(w * b.sum(axis=0))
    of_sure = np.linalg.eigvalsh(halves @ halves.T)[::-1].clip(0, 1)
    labelled = np.sqrt(b.sum(axis=1))
    halves = b / labelled[:, None] / np.sqrt(b.sum(axis=0))
    of_equal = np.linalg.eigvalsh(halves @ halves.T)[::-1].clip(0, 1)
    sizes = [len(set(column[column >= 0])) for column in np.asarray(labels).T]
    sizes = [k + (k == max(sizes)) for k in sizes]
    support = []
    for k in range(2, largest + 1):
        shares = [min(1.0, sum(of_equal[:n]) / np.mean([min(n, k_m) for k_m in sizes])) for n in (k, k + 1)]
        gap = np.sqrt(1 - of_equal[k]) - np.sqrt(1 - of_equal[k - 1])
        ratio = np.log((1 - of_sure[k] + 1e-3) / (1 - of_sure[k - 1] + 1e-3))
        support.append(np.cbrt(max(gap, 0) * (max(shares[0] - shares[1], 0) + 1e-3) * max(ratio, 0)))
    return np.array(support)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_support_is_that_of_all_pairs(seed, missing, where):
    labels = random_labels(50, 7, (2, 9), missing=missing, seed=seed)
    found = ge.evidence.spectrum(labels, 12, device=where)
    np.testing.assert_allclose(found.support, literal(labels, 12), atol=1e-6)
    assert found.numbers.tolist() == list(range(2, 13))
    assert found.suggested == 2 + np.argmax(found.support)
    assert ge.evidence.spectrum(ge.Rows(labels), 12).suggested == found.suggested


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([[0, 0, 1, 1, 2]] * 4, 3),  # all clusterings agree on three clusters
        ([[0, 0, 0, 0]] * 2, 1),
        ([[0, 1, 2]] * 2, 2),  # three clusters of one object do not count; only two clusters remain, without support
        ([[0, 0, 1, 1]] * 3, 2),
        ([[0, 0, 1, 1, 2, 2]] * 9 + [[0, 1, 2, 2, 3, 3]], 3),
    ],
)
@pytest.mark.filterwarnings("ignore:constant clusterings", "ignore:n_clusters is not given")
def test_small_answers(labels, expected):
    columns = [np.array(column) for column in labels]
    assert ge.evidence.spectrum(columns).suggested == expected
    for method in (ge.EAC, ge.LWEA, ge.LWGP):
        assert method().fit(columns).n_clusters_ == expected


@pytest.mark.parametrize("method", sorted(METHODS.keys() - OWN_RULE))
def test_every_method_goes_by_it(method):
    labels, _ = structured_labels(150, 12, 4, noise=0.1, split=1, seed=3)
    est = METHODS[method]().fit(labels)
    assert est.spectrum_.suggested == 4 == ge.choose_k(labels, ks=range(2, 8)).suggested
    np.testing.assert_array_equal(est.labels_, METHODS[method](4).fit(labels).labels_)
    assert not hasattr(est.set_params(n_clusters=4).fit(labels), "spectrum_")


def test_doubt_is_said_in_a_sentence():
    labels = np.random.default_rng(0).integers(0, 6, (200, 8))
    with pytest.warns(UserWarning, match="n_clusters is not given") as said:
        found = ge.consensus(labels, method="lwgp")
    sentences = [one_sentence(warning.message) for warning in said]
    assert any("is in doubt: none of 2 … 20 clusters has clear support; give n_clusters" in s for s in sentences)
    assert found.max() < 20


def test_more_clusters_than_are_compared_are_not_passed_over_in_silence():
    """The data have 25 clusters, but by default the spectrum compares only numbers of clusters up to 20."""
    rng = np.random.default_rng(0)
    truth, place = rng.integers(25, size=1500), rng.random(1500)
    cuts = [((rng.permutation(25)[truth] + place) * k / 25).astype(int) for k in rng.integers(7, 100, 20)]
    assert ge.evidence.spectrum(cuts).doubt() == "none of 2 … 20 clusters has clear support"
    assert ge.evidence.spectrum(cuts, 40).suggested == 25


def test_never_hundreds(recwarn):
    """In the tree of fine clusterings, the cut into all distinct rows has the longest lifetime."""
    rng = np.random.default_rng(1)
    labels = np.column_stack([np.arange(400) // 100 * 20 + rng.integers(0, 20, 400) for _ in range(10)])
    assert ge.LWEA().fit(labels).n_clusters_ == 4


def test_labels_in_chunks_give_the_same_number(monkeypatch):
    labels, _ = structured_labels(300, 10, 5, noise=0.1, seed=4)
    chunks = da.from_array(ge.Ensemble(labels).to_array(), chunks=(60, 10))
    assert ge.LWGP().fit(chunks).n_clusters_ == ge.LWGP().fit(labels).n_clusters_ == 5


def test_soft_clusterings_count_by_their_likely_clusters():
    hard = np.repeat([0, 1, 2], 20)
    soft = np.eye(3)[hard] * 0.7 + 0.1
    assert ge.SCEC().fit([soft, hard, soft]).n_clusters_ == 3


def test_a_distance_or_a_size_is_heeded():
    labels, _ = structured_labels(200, 10, 5, noise=0.1, seed=4)
    assert not hasattr(ge.EAC(distance_threshold=0.5).fit(labels), "spectrum_")
    assert ge.EAC(min_size=20).fit(labels).n_clusters_ == 5
    refused(lambda: ge.EAC(min_size=201).fit(labels), ValueError, "min_size=201", "200 objects")


def test_the_command_line_leaves_it_open(tmp_path, capsys):
    labels, _ = structured_labels(150, 12, 4, noise=0.1, split=1, seed=3)
    np.save(tmp_path / "l.npy", labels)
    assert cli.main(["run", f"{tmp_path}/l.npy", "--method", "lwgp", "-o", f"{tmp_path}/c.npy"]) == 0
    assert "4 clusters" in capsys.readouterr().out
    assert json.loads((tmp_path / "c.npy.json").read_text())["n_clusters"] == 4
