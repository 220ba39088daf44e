"""Losses of a partition to clusterings: Binder's loss, the variation of information, and one minus the ARI.

With n_r, n_c and n_rc as in `gpuens.partition.median`, and an object without a label alone in its clustering:

    binder: [a Σ_c n_c² + (2 - a) Σ_r n_r² - 2 Σ_rc n_rc²] / N²
    vi:     Σ_rc n_rc [a log2(n_c / n_rc) + (2 - a) log2(n_r / n_rc)] / N
    omari:  1 - ARI

A loss needs the table of one pair of clusterings, so that D distinct clusterings of N objects take the time O(D N).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.distinct import Distinct
from gpuens.contingency.labels import labels_of
from gpuens.contingency.scores import ari_of_sums, sum_of_squares
from gpuens.contingency.tables import cells, count_columns
from gpuens.labels.encoding import encode_vector
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.frames import as_pandas, is_frame
from gpuens.labels.object_names import in_order_of
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import logarithms

LOSSES = ("binder", "vi", "omari")


def check_loss(loss: Any, a: Any) -> float:
    """Return the weight ``a`` as a float; refuse an unknown loss, and a weight that it does not have."""
    checks.check_choice(loss, "loss", LOSSES)
    weight = checks.check_between(a, "a", 0.0, 2.0)
    if weight != 1.0 and loss == "omari":
        raise ValueError(
            f"a={a} weighs the two kinds of error of loss 'binder' or 'vi', but 'omari' has no such weight; "
            "leave it out."
        )
    return weight


def read_draws(draws: Any, labels: Any) -> tuple[Ensemble, np.ndarray]:
    """Return the ensemble of draws, and the codes (n_objects,) of a partition of the same objects.

    The length of the partition tells whether the draws are the columns of an array, as in `Ensemble`, or its rows, as R
    writes them. A square array is read as `Ensemble` reads it.
    """
    n = len(labels) if hasattr(labels, "__len__") else 0
    if isinstance(draws, (list, tuple)):
        wide = bool(draws) and hasattr(draws[0], "__len__") and len(draws[0]) == n
    else:
        shape = tuple(getattr(draws, "shape", ()))
        if len(shape) == 2 and n and n not in shape:
            raise ValueError(
                f"labels are of {n} objects, but draws of shape {shape} are of {shape[0]} or {shape[1]}; pass a label "
                "for each object of the draws."
            )
        wide = len(shape) == 2 and shape[0] != shape[1] and n in shape
        if wide and n == shape[1]:
            draws = (as_pandas(draws) if is_frame(draws) else draws).T
    ensemble = Ensemble(draws, wide=wide)
    codes = encode_vector(in_order_of(ensemble.index, labels, "labels", "draws"), "labels", ensemble.n_objects)
    if (unlabelled := np.count_nonzero(codes < 0)) > 0:
        raise ValueError(
            f"labels leave {unlabelled} object(s) without a cluster (-1, NaN or None), but a partition has all; "
            "give each of them a label of its own, or leave them out of the draws, too."
        )
    return ensemble, codes


def losses_to(
    ensemble: Ensemble, codes: np.ndarray, loss: str, a: float = 1.0, counts: np.ndarray | None = None
) -> np.ndarray:
    """Return the losses (M,), float64, of the partition ``codes`` (G,), 0 … k - 1, to the clusterings.

    ``counts`` (G,), int64, are the numbers of objects of the rows. Equal clusterings are compared once, and have equal
    losses.
    """
    distinct = Distinct.among(labels_of(ensemble))
    sizes, loss_of = np.bincount(codes, weights=counts).astype(np.int64), _LOSSES[loss]
    columns = distinct.labels.matrix
    partition = codes.astype(np.result_type(columns.dtype, np.min_scalar_type(len(sizes))))

    def losses_of_range(start: int, stop: int) -> list[float]:
        pairs = zip(columns[start:stop].astype(partition.dtype), distinct.labels.n_clusters[start:stop], strict=True)
        return [loss_of(_Overlap.of(partition, sizes, column, k, counts), a) for column, k in pairs]

    losses = [value for values in devices.over_ranges(losses_of_range, len(columns)) for value in values]
    return np.array(losses)[distinct.of]


class _Overlap(NamedTuple):
    """The cells of the table of a partition (rows) and a clustering (columns), and the sizes of their clusters."""

    rows: np.ndarray
    columns: np.ndarray
    shared: np.ndarray
    row_sizes: np.ndarray  # with objects that the clustering does not label
    column_sizes: np.ndarray
    alone: np.ndarray  # (k,): objects of each cluster of the partition that the clustering does not label

    @classmethod
    def of(
        cls, partition: np.ndarray, sizes: np.ndarray, column: np.ndarray, k: int, counts: np.ndarray | None
    ) -> "_Overlap":
        rows, columns, shared = cells(count_columns(partition, column, len(sizes), k, counts))
        labelled = np.bincount(rows, weights=shared, minlength=len(sizes)).astype(np.int64)
        column_sizes = np.bincount(columns, weights=shared, minlength=k).astype(np.int64)
        return cls(rows, columns, shared, sizes, column_sizes, sizes - labelled)


def _binder(overlap: _Overlap, a: float) -> float:
    n, n_alone = int(overlap.row_sizes.sum()), int(overlap.alone.sum())
    together = sum_of_squares(overlap.shared) + n_alone
    apart = sum_of_squares(overlap.column_sizes) + n_alone - together  # pairs that the partition puts apart
    return float((a * apart + (2 - a) * (sum_of_squares(overlap.row_sizes) - together)) / n**2)


def _vi(overlap: _Overlap, a: float) -> float:
    of_rows, of_columns = overlap.row_sizes[overlap.rows], overlap.column_sizes[overlap.columns]
    bits = a * logarithms(of_columns / overlap.shared) + (2 - a) * logarithms(of_rows / overlap.shared)
    of_alone = (2 - a) * overlap.alone * logarithms(overlap.row_sizes.astype(np.float64))
    return float(((overlap.shared * bits).sum() + of_alone.sum()) / overlap.row_sizes.sum())


def _omari(overlap: _Overlap, a: float) -> float:
    n_alone, k = int(overlap.alone.sum()), int(np.count_nonzero(overlap.column_sizes))
    sizes = len(overlap.shared) + n_alone, len(overlap.row_sizes), k + n_alone
    same_both, same_column = (sum_of_squares(x) + n_alone for x in (overlap.shared, overlap.column_sizes))
    n = int(overlap.row_sizes.sum())
    return 1.0 - ari_of_sums(*sizes, n, same_both, sum_of_squares(overlap.row_sizes), same_column)


_LOSSES: dict[str, Callable[[_Overlap, float], float]] = {"binder": _binder, "vi": _vi, "omari": _omari}
