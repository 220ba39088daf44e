"""Single linkage compared with a spanning tree of all pairs."""

import numpy as np
import oracles
import pytest
from conftest import random_labels, structured_labels

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows, as_rows
from gpuens.partition import Work, single_linkage
from gpuens.reduction import core_groups
from gpuens.similarity.diagonal import Diagonal


def prepared(labels, weighted):
    ensemble = Ensemble(labels)
    weights = np.random.default_rng(0).uniform(0.05, 1, ensemble.n_clusters) if weighted else None
    return core_groups(Rows(ensemble)), weights, np.ones(ensemble.n_clusters, np.int64) if weights is None else weights


def heights_of_all_objects(dendrogram, reduced, weights):
    groups = reduced.ensemble
    known = groups.to_array() >= 0
    within = (np.asarray(weights, float)[np.where(known, groups.to_array() + groups.offsets[:-1], 0)] * known).sum(
        axis=1
    )
    return dendrogram.expand(reduced.row_of, within / groups.n_clusterings).similarities


@pytest.mark.parametrize("weighted", [False, True])
def test_single_linkage_is_the_spanning_tree(any_labels, weighted, where):
    reduced, weights, w = prepared(any_labels, weighted)
    found = single_linkage(as_rows(reduced.rows, where), Diagonal(w, reduced.rows.offsets))
    expected = oracles.single_linkage_heights(any_labels, weights)
    np.testing.assert_allclose(heights_of_all_objects(found, reduced, w), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("n_listed", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_single_linkage_with_lists_that_run_dry(sizes, seed, weighted, n_listed, where):
    sizes("partition.linkage.conduct", N_LISTED=n_listed)
    labels = [random_labels(150, 6, (2, 7), seed=seed), structured_labels(150, 8, 3, noise=0.2, seed=seed)[0]][seed % 2]
    reduced, weights, w = prepared(labels, weighted)
    work = Work()
    found = single_linkage(as_rows(reduced.rows, where), Diagonal(w, reduced.rows.offsets), work=work)
    assert work.searches > 0
    expected = oracles.single_linkage_heights(labels, weights)
    np.testing.assert_allclose(heights_of_all_objects(found, reduced, w), expected, atol=1e-12, rtol=0)
