"""The CA-tree compared with a literal tree of node objects: nodes, radii, representatives, cuts and descents."""

import numpy as np
import oracles
import pytest
from conftest import MANY_SHAPES, METHODS, NEEDS_LITTLE_NOISE, random_labels, refused, shapes, structured_labels
from sklearn.base import clone

import gpuens as ge
from gpuens.reduction.ca_tree import grow
from gpuens.runtime.device import to_host

ENSEMBLES = {
    **MANY_SHAPES,
    "many rows": lambda: structured_labels(300, 10, 4, noise=0.3, split=3, missing=0.05, seed=2)[0],
    "many clusters": lambda: np.column_stack([np.arange(320) % 300, random_labels(320, 3, 4, seed=5)]),
}
SETTINGS = [(32, "given"), (4, "coarse"), (1, "fine"), (None, "given")]


@pytest.fixture(params=shapes(ENSEMBLES))
def labels(request):
    return ENSEMBLES[request.param]()


def literal_order(ens, order):
    k = np.diff(ens.offsets)
    return sorted(range(len(k)), key=lambda m: {"given": 0, "coarse": k[m], "fine": -k[m]}[order])


def nodes_of(root):
    return [root] + [z for child in root.children for z in nodes_of(child)]


@pytest.mark.parametrize(("n_des", "order"), SETTINGS)
def test_the_tree_is_the_literal_one(labels, n_des, order, where):
    ens = ge.Ensemble(labels)
    codes = ens.to_array()
    tree = grow(ge.Rows(ens, device=where), n_des, order)
    root = oracles.ca_tree(codes, literal_order(ens, order), n_des)
    assert tree.clusterings.tolist() == literal_order(ens, order)
    objects_of = objects_below(tree)
    found = {frozenset(objects_of[z]): z for z in range(len(tree))}
    literal = {frozenset(z.objects): z for z in nodes_of(root)}
    assert found.keys() == literal.keys()
    for objects, z in found.items():
        node = literal[objects]
        assert tree.counts[z] == len(objects)
        assert tree.radii[z] == node.radius
        assert tuple(codes[objects_of[tree.representatives[z]][0]].tolist()) == node.representative[1]
        parent = tree.parents[z]
        assert (node.parent is None) == (parent < 0)
        assert node.parent is None or frozenset(node.parent.objects) == frozenset(objects_of[parent])


def objects_below(tree):
    leaf_of_group = np.empty(tree.n_leaves, dtype=np.int64)
    leaf_of_group[tree._leaves] = np.arange(tree.n_leaves)
    leaf = leaf_of_group[to_host(tree._groups.row_of)]
    return [np.flatnonzero((tree.first[z] <= leaf) & (leaf <= tree.last[z])).tolist() for z in range(len(tree))]


@pytest.mark.parametrize(
    ("tau", "gamma", "n_des", "order"),
    [(0, 1, *SETTINGS[0]), (0.2, 1, *SETTINGS[1]), (0.4, 1, *SETTINGS[0]), (0.2, 0.9, *SETTINGS[0]),
     (0.5, 0.5, *SETTINGS[1]), (1, 1, *SETTINGS[1]), (0, 0.3, *SETTINGS[0])],
)  # fmt: skip
def test_cuts_and_descents_are_the_literal_ones(labels, tau, gamma, n_des, order, where):
    ens = ge.Ensemble(labels)
    codes = ens.to_array()
    tree = grow(ge.Rows(ens, device=where), n_des, order)
    root = oracles.ca_tree(codes, literal_order(ens, order), n_des)
    reduced = tree.reduce(tau, gamma)
    literal = oracles.reduce_ca_tree(root, tau * codes.shape[1], gamma, len(codes))
    rows, row_of = reduced.ensemble.to_array().tolist(), to_host(reduced.row_of)
    found = {
        tuple(row): (int(count), frozenset(np.flatnonzero(row_of == i).tolist()))
        for i, (row, count) in enumerate(zip(rows, reduced.counts, strict=True))
    }
    assert found == {z.representative[1]: (len(z.objects), frozenset(objects)) for z, objects in literal}
    assert tree.kept_share(tau, gamma) == len(literal) / len(oracles.cut_ca_tree(root, tau * codes.shape[1]))


def test_no_radius_is_core_groups(labels):
    ens = ge.Ensemble(labels)
    groups, reduced = ge.CoreGroups().reduce(ens), ge.CATree(tau=0).reduce(ens)
    for part in (lambda r: r.ensemble.codes, lambda r: r.counts, lambda r: r.row_of):
        np.testing.assert_array_equal(part(reduced), part(groups))
    for method in (ge.EAC, ge.LWEA):
        k = min(3, len(groups.counts))
        on_nodes = method(k, reduction=ge.CATree(tau=0)).fit(ens)
        np.testing.assert_array_equal(on_nodes.labels_, method(k).fit(ens).labels_)


def test_estimated_radii_are_no_smaller_than_exact_ones():
    labels = ENSEMBLES["many rows"]()
    exact, estimated = (ge.CATree(n_des=n).grow(labels) for n in (None, 8))
    np.testing.assert_array_equal(exact.first, estimated.first)
    assert (estimated.radii >= exact.radii).all()
    assert (estimated.radii > exact.radii).any()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_works_on_nodes(method):
    labels, truth = structured_labels(500, 10, 4, noise=0.15, split=3, seed=11)
    est = METHODS[method](4, reduction=ge.CATree(tau=0.2, gamma=0.9)).fit(labels)
    assert method in NEEDS_LITTLE_NOISE or ge.metrics.ari(truth, est.labels_) > 0.8
    assert len(est.reduction_.counts) < 0.7 * len(ge.CoreGroups().reduce(ge.Ensemble(labels)).counts)
    by_name = clone(est).set_params(reduction="catree:tau=0.2,gamma=0.9").fit(labels)
    np.testing.assert_array_equal(by_name.labels_, est.labels_)


def test_nodes_may_count_alike():
    labels = ENSEMBLES["many rows"]()
    sized, unit = (ge.CATree(tau=0.3, counts=counts).reduce(ge.Ensemble(labels)) for counts in ("size", "unit"))
    assert set(unit.counts.tolist()) == {1}
    assert sized.counts.sum() == len(labels)
    np.testing.assert_array_equal(unit.row_of, sized.row_of)


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"tau": -0.1}, ValueError, "tau must be from 0 to 1"),
        ({"tau": 3}, ValueError, "tau must be from 0 to 1"),
        ({"tau": "a"}, TypeError, "tau must be a number"),
        ({"gamma": 0}, ValueError, "gamma must be above 0"),
        ({"gamma": 1.1}, ValueError, "gamma must be above 0"),
        ({"n_des": 0}, ValueError, "n_des must be at least 1"),
        ({"order": "random"}, ValueError, "order must be one of"),
        ({"counts": "none"}, ValueError, "counts must be one of"),
    ],
)
def test_bad_settings_are_refused(settings, kind, said):
    refused(lambda: ge.CATree(**settings), kind, said)
