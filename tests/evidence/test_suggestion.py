"""The suggested number of clusters compared with a literal rule, and on ensembles whose right number is known."""

import json
from collections import Counter

import dask.array as da
import numpy as np
import oracles
import pytest
from conftest import METHODS, one_sentence, random_labels, refused, structured_labels
from sklearn.cluster import KMeans

import gpuens as ge
from gpuens import cli

OWN_RULE = {"em", "median"}  # they choose the number of clusters by the likelihood and by the loss


def literal(labels, support, largest):
    """Return the suggested number and whether it is in doubt, from the support of 2, …, ``largest`` clusters.

    The result of the transfer cut is that of LWGP, which makes the same cut.
    """
    columns = [column[column >= 0] for column in np.asarray(labels).T]
    sizes = sorted(len(set(column)) for column in columns)
    entropies = [-sum(n / len(c) * np.log(n / len(c)) for n in Counter(c.tolist()).values()) for c in columns]
    effective = np.exp(sum(entropies) / len(entropies))
    low, high = np.quantile(sizes, 0.25), np.quantile(sizes, 0.75)
    agreed = max(Counter(sizes).values()) >= 0.3 * len(sizes) and high <= 2.2 * low
    first, second = sorted(support.items(), key=lambda one: (-round(one[1] / 1e-4), one[0]))[:2]
    clear = first[1] >= max(0.05, 1.4 * second[1])
    inside = np.floor(low) <= first[0] <= np.ceil(high)
    c, s = (effective, 0.1) if agreed else (max(effective / 2, sizes[0]), 1.0)
    score = {k: np.log(of + 0.03) / 2 - (np.log(k) - np.log(c)) ** 2 / (2 * s * s) for k, of in support.items()}
    among = {k: of for k, of in score.items() if not agreed or np.floor(low) <= k <= np.ceil(high)}
    in_order = sorted(score, key=lambda k: (k not in (among or score), -round(score[k], 6)))
    decides = clear and (not agreed or inside or first[1] >= 3.2 * second[1])
    if not agreed and not clear and 0.05 <= first[1] < 1.4 * second[1]:
        decides = same_of_halves(labels, first[0], entropies)
    if decides:
        in_order = [first[0], *(k for k in in_order if k != first[0])]
    best = ([k for k in in_order[:6] if not lopsided(labels, columns, k)] or in_order)[0]
    certain = agreed or (decides and best == first[0] and first[1] >= 1.75 * second[1])
    return best, not certain or first[1] < 0.05


def same_of_halves(labels, k, entropies):
    """Return whether the cuts of halves agree; clusterings in the order of their entropies are taken by turns."""
    order = sorted(range(len(entropies)), key=lambda m: entropies[m])
    found = []
    for turn in (1, 2, 4):
        halves = [[m for place, m in enumerate(order) if place // turn % 2 == half] for half in (0, 1)]
        both = np.all([(labels[:, half] >= 0).any(axis=1) for half in halves], axis=0)
        one, other = (ge.LWGP(k).fit(ge.Ensemble(labels[both][:, sorted(half)], wide=True)).labels_ for half in halves)
        found.append(ge.metrics.ari(one, other))
    return len(entropies) >= 5 and np.mean(found) >= 0.98


def lopsided(labels, columns, k):
    share = np.bincount(ge.LWGP(k).fit(labels).labels_).max() / len(labels)
    return share > 0.6 and not any(np.bincount(c).max() > 0.6 * len(c) for c in columns)


def cases():
    """Yield ensembles: random and structured labels, k-means of groups with equal, similar and spread numbers."""
    for seed in range(3):
        yield f"random {seed}", random_labels(60, 8, (2, 9), seed=seed)
        yield f"missing {seed}", random_labels(60, 8, (3, 6), missing=0.2, seed=seed)
        yield f"structured {seed}", structured_labels(150, 10, 5, noise=0.15, split=3, seed=seed)[0]
        rng = np.random.default_rng(seed)
        X = rng.normal(3 * rng.standard_normal((4, 3))[rng.integers(4, size=200)], 1.0)
        for name, ks in (("equal", (6, 6)), ("similar", (5, 8)), ("spread", (2, 20))):
            yield f"{name} {seed}", ge.generate.kmeans_ensemble(X, 12, ks, n_init=1, random_state=seed).to_array()


@pytest.mark.filterwarnings("ignore:n_clusters is not given")
@pytest.mark.parametrize(("name", "labels"), [pytest.param(*case, id=case[0]) for case in cases()])
def test_the_rule_is_the_literal_one(name, labels):
    found = ge.evidence.suggestion(labels)
    spectrum = found.spectrum
    support = dict(zip(spectrum.numbers.tolist(), spectrum.support.tolist(), strict=True))
    assert (found.n_clusters, found.doubtful) == literal(labels, support, spectrum.numbers[-1])
    assert found.n_clusters == ge.LWEA().fit(labels).n_clusters_ == ge.choose_k(labels).suggested
    if name.startswith("random"):  # the support itself is compared with a literal one in test_spectrum.py
        sizes = oracles.incidence(labels).sum(axis=0)
        assert found.sizes.sum() == np.count_nonzero(sizes)


def test_the_cases_contain_every_kind_of_answer():
    found = [ge.evidence.suggestion(labels) for _, labels in cases()]
    kinds = Counter((one.agreed, one.spectrum.clear, one.doubtful) for one in found)
    assert {(True, True, False), (True, False, False), (False, True, False), (False, False, True)} <= kinds.keys()
    assert any(one.stable for one in found)


def programs(seed, n=2000):
    """Return labels of ten programs, most with 8 domains, that share a small tissue and differ in the others."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(8, n, p=[0.05, *[0.95 / 7] * 7])
    place = truth + rng.random(n)
    columns = []
    for k in (8, 8, 8, 8, 8, 8, 7, 9, 10, 12):
        borders = np.sort(np.concatenate([[1.0], 1 + 7 * (np.arange(1, k - 1) + rng.normal(0, 0.4, k - 2)) / (k - 1)]))
        column = np.searchsorted(borders, place)
        strays = (rng.random(n) < 0.3) & (truth > 0)
        columns.append(np.where(strays, rng.integers(1, k, n), column))
    return np.column_stack(columns), truth


@pytest.mark.parametrize("seed", range(4))
def test_what_most_programs_say_counts_more_than_the_one_tissue_that_all_share(seed):
    labels, truth = programs(seed)
    found = ge.evidence.suggestion(labels)
    assert found.spectrum.most_supported < found.n_clusters == 8
    assert found.doubt() is None
    shared = f"the labels in common show {found.spectrum.most_supported} groups most clearly, a coarser choice"
    assert found.reason() == f"6 of 10 clusterings have 8 clusters; {shared}"
    assert ge.metrics.ari(ge.consensus(labels), truth) > 1.5 * ge.metrics.ari(
        ge.LWGP(found.spectrum.most_supported).fit(labels).labels_, truth
    )


@pytest.mark.parametrize("k", [3, 5])
def test_separate_groups_count_more_than_the_number_of_every_k_means(k):
    """Twelve k-means of 15 clusters divide each group at random; nobody wants 15 clusters of them."""
    y = np.arange(900) % k
    X = np.random.default_rng(k).normal(9 * np.eye(k)[y], 1.0)
    labels = np.column_stack([KMeans(15, n_init=1, random_state=seed).fit_predict(X) for seed in range(12)])
    found = ge.evidence.suggestion(labels)
    assert (found.n_clusters, found.doubt()) == (k, None)
    assert found.reason() == f"the clusterings share {k} groups, and no further one as clearly"


def test_planted_segments_of_unequal_sizes():
    """Five segments of 30,000 customers; k-means of 2 … 12 clusters on noisy features."""
    rng = np.random.default_rng(0)
    y = rng.choice(5, 30_000, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    X = rng.normal(4 * rng.standard_normal((5, 6))[y], 1.0)
    labels = ge.generate.kmeans_ensemble(X, 20, (2, 12), random_state=0, progress=False)
    assert ge.evidence.suggestion(labels).n_clusters == 5


@pytest.mark.parametrize("ks", [(6, 7), (2, 20)], ids=["equal", "spread"])
def test_noise_is_in_doubt(ks):
    rng = np.random.default_rng(0)
    labels = np.column_stack([rng.integers(rng.integers(*ks), size=300) for _ in range(10)])
    with pytest.warns(UserWarning, match="n_clusters is not given") as said:
        ge.consensus(labels)
    assert any(
        "is in doubt: the clusterings share no clear groups; give n_clusters" in one_sentence(one.message)
        for one in said
    )


def test_no_cluster_of_nearly_all_objects_that_no_clustering_has():
    """All clusterings share a group of a tenth of the objects, and divide the others at random."""
    rng = np.random.default_rng(0)
    small = np.arange(1000) < 100
    labels = np.column_stack([np.where(small, 0, rng.integers(1, k, 1000)) for k in (4, 5, 7, 9, 12, 15, 18, 20)])
    found = ge.evidence.suggestion(labels)
    assert found.spectrum.clear
    assert found.spectrum.most_supported == 2
    assert found.lopsided[0] == 2
    assert found.n_clusters > 2
    assert found.doubtful
    beside = np.column_stack([labels, *[small.astype(int)] * 4])  # now some clusterings have such a large cluster
    assert ge.evidence.suggestion(beside).n_clusters == 2


def test_numbers_beyond_those_compared():
    """Clusterings of about 100 clusters; only up to 64 eigenvalues are computed."""
    rng = np.random.default_rng(0)
    truth = rng.integers(100, size=3000)
    labels = np.column_stack([np.where(rng.random(3000) < 0.3, rng.integers(100, size=3000), truth) for _ in range(6)])
    found = ge.evidence.suggestion(labels)
    assert found.spectrum.numbers[-1] == 64
    assert found.n_clusters == 100
    assert ge.LWGP().fit(labels).n_clusters_ == 100
    assert found.doubt() is None
    assert 100 in ge.choose_k(labels, method="eac").labels
    assert ge.EAC(min_size=40).fit(labels).n_clusters_ <= 75
    random = rng.integers(100, size=(3000, 6))
    assert ge.evidence.suggestion(random).doubt() == "the clusterings share no clear groups"


@pytest.mark.parametrize("ks", [(5, 6), (2, 20)], ids=["agreed", "spread"])
def test_every_device_suggests_the_same(ks, where):
    X = np.random.default_rng(0).standard_normal((150, 3))
    labels = ge.generate.kmeans_ensemble(X, 8, ks, n_init=1, random_state=0).to_array()
    found, expected = ge.evidence.suggestion(labels, device=where), ge.evidence.suggestion(labels, device="cpu")
    assert (found.best(), found.lopsided, found.effective) == (expected.best(), expected.lopsided, expected.effective)


def test_weights_and_copies_give_the_same_suggestion():
    labels, _ = structured_labels(120, 10, 4, noise=0.3, seed=1)
    weights = np.random.default_rng(0).integers(1, 5, 120)
    of_weights = ge.LWGP().fit(labels, sample_weight=weights).suggestion_
    of_copies = ge.LWGP().fit(np.repeat(labels, weights, axis=0)).suggestion_
    assert of_weights.effective == of_copies.effective
    np.testing.assert_array_equal(of_weights.score, of_copies.score)


def test_the_record_says_why():
    labels, _ = structured_labels(100, 10, 4, noise=0.2, seed=2)
    found = ge.LWGP().fit(labels).suggestion_
    said = found.to_dict()
    assert said["n_clusters"] == found.n_clusters
    assert said["reason"] == found.reason()
    assert said["doubt"] is None
    assert sorted(said["own_numbers"]) == sorted(len(set(column)) for column in labels.T)


@pytest.mark.parametrize("method", sorted(METHODS.keys() - OWN_RULE))
def test_every_method_goes_by_it(method):
    labels, _ = structured_labels(150, 12, 4, noise=0.1, split=1, seed=3)
    est = METHODS[method]().fit(labels)
    assert est.suggestion_.n_clusters == 4 == ge.choose_k(labels, ks=range(2, 8)).suggested
    np.testing.assert_array_equal(est.labels_, METHODS[method](4).fit(labels).labels_)
    assert not hasattr(est.set_params(n_clusters=4).fit(labels), "suggestion_")


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
    assert not hasattr(ge.EAC(distance_threshold=0.5).fit(labels), "suggestion_")
    assert ge.EAC(min_size=20).fit(labels).n_clusters_ == 5
    refused(lambda: ge.EAC(min_size=201).fit(labels), ValueError, "min_size=201", "200 objects")


def test_the_command_line_leaves_it_open(tmp_path, capsys):
    labels, _ = structured_labels(150, 12, 4, noise=0.1, split=1, seed=3)
    np.save(tmp_path / "l.npy", labels)
    assert cli.main(["run", f"{tmp_path}/l.npy", "--method", "lwgp", "-o", f"{tmp_path}/c.npy"]) == 0
    assert "4 clusters" in capsys.readouterr().out
    assert json.loads((tmp_path / "c.npy.json").read_text())["n_clusters"] == 4
