"""Transfer cuts of at most 10,000 objects that test a number of clusters before it is suggested."""

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.metrics import ari
from gpuens.partition.transfer_cut import transfer_cut
from gpuens.reduction import core_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.similarity.coassociation import LWCA

SAMPLE_SIZE = 10_000  # number of objects that are drawn if there are more rows
HALVINGS = 3  # number of divisions of the clusterings into halves
LEAST_ARI = 0.98  # smallest mean ARI of the cuts of two halves that are the same partition
FEWEST_CLUSTERINGS = 2 ** (HALVINGS - 1) + 1  # smallest number of clusterings for which all halvings differ


def sample_of(rows: Rows) -> Rows:
    """Return the rows of all objects or, if they are many or in pieces, of randomly drawn objects."""
    rows = rows.hardened()
    return rows if rows.here and rows.n_rows <= SAMPLE_SIZE else rows.draw(SAMPLE_SIZE, np.random.default_rng(0))


def largest_cluster(rows: Rows, n_clusters: int) -> float:
    """Return the share of the objects in the largest cluster of the transfer cut of a sample of rows."""
    sizes = np.bincount(_cut(rows, n_clusters), weights=rows.counts)
    return float(sizes.max() / sizes.sum())


def halves_agree(rows: Rows, n_clusters: int, entropies: np.ndarray) -> bool:
    """Return whether halves of the clusterings give the same cut of a sample of rows.

    In the order of their ``entropies`` (M,), the clusterings are divided by each of three binary digits of their
    positions, so that both halves have coarse and fine clusterings, in whatever order they were given.
    """
    order, places = np.argsort(entropies, kind="stable"), np.arange(rows.n_clusterings)
    if rows.n_clusterings < FEWEST_CLUSTERINGS:
        return False
    labelled, agreement = devices.to_host(rows.codes) != rows.ensemble.missing_code, []
    for digit in range(HALVINGS):
        halves = [np.sort(order[(places >> digit) & 1 == bit]) for bit in (0, 1)]
        common = rows.take(np.flatnonzero(np.all([labelled[:, half].any(axis=1) for half in halves], axis=0)))
        first, second = (_cut(_select_clusterings(common, half), n_clusters) for half in halves)
        agreement.append(ari(first, second, sample_weight=common.counts))
    return float(np.mean(agreement)) >= LEAST_ARI


def _select_clusterings(rows: Rows, clusterings: np.ndarray) -> Rows:
    """Return the rows with only some of the clusterings."""
    sizes = np.diff(rows.offsets)[clusterings]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    codes = rows.xp.asfortranarray(rows.codes[:, rows.xp.asarray(clusterings)])
    return Rows.of_codes(codes, offsets, rows.counts, rows.device)


def _cut(rows: Rows, n_clusters: int) -> np.ndarray:
    """Return the labels (G,), host, of the transfer cut of rows, which need not be distinct."""
    groups = core_groups(rows)
    with checks.recorded():  # the user never sees this cut, so warnings about it are suppressed
        weights = LWCA()(groups.rows).weights.astype(np.float64)
        partition = transfer_cut(groups.rows, weights, min(n_clusters, groups.rows.n_rows))
    return devices.to_host(partition.labels)[devices.to_host(groups.row_of)]
