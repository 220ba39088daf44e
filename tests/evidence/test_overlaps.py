"""Evidence for a consensus of very many clusters, whose tables are sparse, compared with the dense tables."""

import json

import numpy as np
import pytest
from conftest import refused
from scipy import sparse

import gpuens as ge
from gpuens import evidence
from gpuens.evidence.objects import measure_objects
from gpuens.evidence.overlaps import Overlaps
from gpuens.labels.rows import as_rows


def entities(missing=0.0, *, n=300, k=60, m=7, seed=0):
    """Return clusterings (n, m) of the records of k entities, with records that went astray, and a consensus (n,)."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    astray = lambda share: np.where(rng.random(n) < share, rng.integers(0, k + 9, n), truth)  # noqa: E731
    labels = np.stack([astray(0.1) for _ in range(m)], axis=1)
    unknown = rng.random(labels.shape) < missing
    unknown[np.arange(n), rng.integers(0, m, n)] = False
    return np.where(unknown, -1, labels), np.unique(astray(0.1), return_inverse=True)[1]


@pytest.fixture
def all_sparse(sizes):
    return lambda: sizes("evidence.overlaps", WHOLE_CELLS=0, WHOLE_CELLS_PER_LABEL=0)


@pytest.mark.parametrize("missing", ["zero", "ignore"])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
def test_sparse_evidence_is_the_dense_one(missing, share, all_sparse, step_bytes):
    """What integers decide is equal to the bit; entropies and confidences are sums in another order."""
    labels, consensus = entities(share)
    labels = np.column_stack([labels, np.arange(300) < 200])  # a base cluster that most clusters share

    def parts():
        return (
            evidence.objects(labels, consensus, missing=missing),
            evidence.clusters(labels, consensus, missing=missing),
            evidence.agreement(labels, consensus),
        )

    expected = parts()
    all_sparse()
    step_bytes(2**12)
    found = parts()
    assert sparse.issparse(found[1].between)
    for one, other in zip(found, expected, strict=True):
        for name in getattr(one, "_fields", ("sizes", "consensus", "stability", "between")):
            values = getattr(one, name)
            values = values.toarray() if sparse.issparse(values) else values
            rtol, atol = (1e-12, 1e-14) if name in ("entropy", "confidence") else (0, 0)
            np.testing.assert_allclose(values, getattr(other, name), rtol=rtol, atol=atol, err_msg=name)
    some = np.array([5, 0, 17])
    np.testing.assert_array_equal(found[1].among(some), expected[1].among(some))
    np.testing.assert_array_equal(found[1].nearest(), expected[1].nearest())


@pytest.mark.parametrize("missing", ["zero", "ignore"])
def test_sparse_evidence_for_new_objects_is_the_dense_one(missing, all_sparse):
    """A new object may have a label with which it shares no base cluster."""
    labels, consensus = entities(0.2)
    rows = as_rows(labels, "cpu")
    new = rows.take(np.arange(80)), np.random.default_rng(1).permutation(consensus)[:80], missing
    expected = measure_objects(Overlaps.of(rows, consensus), *new, new=True)
    all_sparse()
    found = measure_objects(Overlaps.of(rows, consensus), *new, new=True)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("missing", ["zero", "ignore"])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
def test_pairs_with_a_common_cluster_are_visited_alone(missing, share, sizes, step_bytes):
    rng = np.random.default_rng(1)
    labels, _ = entities(share)
    labels = np.concatenate([labels, labels[rng.integers(0, 300, 60)]])
    sizes("evidence.sparse_pairs", COMPARISONS_A_VISIT=10**9)
    expected = evidence.pairs(labels, missing=missing)
    sizes("evidence.sparse_pairs", COMPARISONS_A_VISIT=0)
    step_bytes(2**16)
    found = evidence.pairs(labels, missing=missing)
    for name in ("matches", "copresent", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_evidence_for_thousands_of_entities_needs_little_memory(monkeypatch):
    """Dense tables would need 60 GB here."""
    rng = np.random.default_rng(0)
    truth = np.concatenate([np.arange(20_000), rng.integers(0, 20_000, 20_000)])
    labels = [np.where(rng.random(40_000) < 0.02, rng.integers(0, 20_000, 40_000), truth) for _ in range(5)]
    monkeypatch.setenv("GPUENS_MEMORY", "200MB")
    found = evidence.Evidence(labels, truth)
    assert found.objects.confidence.min() > 0
    assert found.clusters.between.shape == (20_000, 20_000)
    assert found.agreement.mean_ecs > 0.95
    assert "20,000 clusters" in repr(found)


def test_a_coarse_clustering_beside_a_fine_consensus_needs_memory_for_all_pairs_only(
    monkeypatch, all_sparse, step_bytes
):
    """A base cluster of half the objects is shared by all pairs of their clusters."""
    labels = np.stack([np.arange(2000) // 2, np.arange(2000) // 1000], axis=1)
    expected = evidence.clusters(labels, labels[:, 0])
    all_sparse()
    step_bytes(2**16)
    monkeypatch.setenv("GPUENS_MEMORY", "10MB")
    found = evidence.Evidence(labels, labels[:, 0])
    assert "1,000 clusters" in repr(found)
    assert "left out" not in repr(found)
    for name in ("sizes", "consensus", "stability"):
        np.testing.assert_array_equal(getattr(found.clusters, name), getattr(expected, name))
    np.testing.assert_array_equal(found.clusters.nearest(), expected.nearest())
    np.testing.assert_array_equal(found.clusters.among(slice(490, 510)), expected.among(slice(490, 510)))
    refused(lambda: found.clusters.between, MemoryError, "pairs of 1,000 clusters", "among(clusters) or nearest()")


def test_pictures_show_the_largest_of_many_clusters(sizes):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    labels, consensus = entities()
    found, k = evidence.Evidence(labels, consensus), int(consensus.max()) + 1
    sizes("plotting.evidence", MOST_DRAWN=40)
    which = f"the 40 largest of {k} clusters"
    new = lambda: Figure().subplots()  # noqa: E731
    assert ge.plotting.item_consensus(found, ax=new()).get_xlabel().replace("\n", " ") == which
    assert len(ge.plotting.cluster_consensus(found, ax=new()).patches) == 40
    assert ge.plotting.silhouettes(found, ax=new()).get_ylabel().replace("\n", " ") == which
    ax = ge.plotting.between_clusters(found, ax=new())
    assert ax.get_title().replace("\n", " ") == f"Consensus within and between {which}"
    assert ax.images[-1].get_array().shape == (40, 40)


def test_the_command_prints_the_largest_of_many_clusters(tmp_path, monkeypatch, capsys, sizes):
    from gpuens import cli

    monkeypatch.chdir(tmp_path)
    labels, consensus = entities()
    np.save("labels.npy", labels)
    np.save("consensus.npy", consensus)
    k = int(consensus.max()) + 1
    sizes("cli.evidence", MOST_ROWS=20, LARGEST=8)
    assert cli.main(["evidence", "labels.npy", "consensus.npy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    numbers, shown = np.array([line.split()[:2] for line in lines[2:10]], dtype=int).T.tolist()
    assert numbers == sorted(numbers)
    assert sorted(shown) == sorted(np.bincount(consensus).tolist())[-8:]
    assert lines[10] == f"… and {k - 8:,} smaller clusters, which --json lists"
    assert cli.main(["evidence", "labels.npy", "consensus.npy", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["clusters"]) == k
