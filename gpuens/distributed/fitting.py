"""Functions that fit a method to labels in chunks, and that count intersections of clusters."""

from functools import partial
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from gpuens.contingency.clusters import layout_for
from gpuens.contingency.labels import Table
from gpuens.distributed import worker
from gpuens.distributed.chunks import Chunks
from gpuens.distributed.pieces import ChunkPieces
from gpuens.distributed.reductions import ScatteredReduction
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows
from gpuens.reduction import Sample
from gpuens.runtime import checks
from gpuens.runtime import device as devices

ATTEMPTS = 3  # number of times that rows are sent to a worker, if those that were sent them die

Fitted = TypeVar("Fitted", bound=BaseEstimator)


def fit(
    estimator: Fitted, labels: Any, *, client: Any = None, every_column: bool = False, sample_weight: Any = None
) -> Fitted:
    """Fit a consensus estimator to labels in chunks; ``estimator.fit(labels)`` does the same with the active client.

    Parameters
    ----------
    estimator : a consensus estimator
    labels : dask.array.Array (n_objects, n_clusterings), chunked by rows
        Chunks that `gpuens.Ensemble` accepts; a label has the same meaning in all chunks. Unknown chunk sizes are
        computed. Columns of a Dask DataFrame with names such as truth, batch or id are left out with a warning.
    client : distributed.Client, optional
    every_column : bool
        Use every column of a Dask DataFrame.
    sample_weight : array or dask.array.Array (n_objects,), or a column of a Dask DataFrame; optional
        Whole numbers of objects, in the order of the labels: an object of weight 3 counts as three objects. They are
        divided by their greatest common divisor, over all chunks.

    Returns
    -------
    estimator
        ``labels_`` is a lazy Dask array with the same chunks, which can be computed with or without any client; only
        persisted ``labels`` need the client that holds them. With device="auto" and chunks on the GPUs of a cluster, a
        worker's GPU finds the partition, so that this process needs no GPU.

    Raises
    ------
    ValueError, TypeError
        For invalid labels, with the number of the chunk, and for chunks whose shape or dtype differs from the declared
        one.
    MemoryError
        If the core groups do not fit this process or the workers, or if workers stop because their memory is full.
    ConnectionError
        If the scheduler has stopped.

    Examples
    --------
    >>> import dask.array as da
    >>> import gpuens as ge
    >>> labels = da.from_array(ge.Ensemble([[0, 0, 1, 1, 1, 2], [5, 5, 5, 7, 7, 7]]).to_array(), chunks=(2, 2))
    >>> est = ge.EAC(n_clusters=2).fit(labels)
    >>> est.labels_.chunks, est.labels_.compute().tolist()
    (((2, 2, 2),), [0, 0, 0, 1, 1, 1])
    """
    parts = estimator.checked_parts()
    if parts.needs_features:
        raise TypeError(
            f"labels are in chunks, but {type(estimator).__name__} compares each object with all others; pass "
            "labels.compute(), or take a method without such comparisons."
        )
    if parts.gives_names:
        raise TypeError(
            "labels are in chunks, but vocabulary='shared' votes on labels in memory; pass labels.compute(), or fit "
            "each chunk, because the votes for an object need no other objects."
        )
    if sample_weight is not None and isinstance(parts.reduction, Sample):
        raise TypeError(
            "sample_weight was given, but the sample of labels in chunks has no weights; pass labels.compute(), or "
            "leave out the weights or the reduction."
        )
    chunks = Chunks(labels, client, every_column=every_column, sample_weight=sample_weight)
    parts = parts.in_units(chunks.unit)
    if isinstance(parts.reduction, Sample):
        sample = chunks.sample(parts.reduction, chunks.there(estimator.device))
        _fit_here(estimator, parts, chunks, sample.ensemble, sample.on)
    elif parts.reduction is None and not (chunks.fit_here and _fits_gpu(estimator, parts, chunks)):
        _fit_in_pieces(estimator, parts, chunks)
    else:
        _fit_here(estimator, parts, chunks, chunks.groups.ensemble, partial(chunks.reduce, parts.reduction))
    return estimator


def _fits_gpu(estimator: Any, parts: Any, chunks: Chunks) -> bool:
    """Return whether one GPU can work on the core groups; true for methods that cannot work on rows in pieces."""
    return not parts.learns_by_sums or estimator.device == "cpu" or chunks.fit_gpu


def _fit_here(estimator: Any, parts: Any, chunks: Chunks, ensemble: Any, reduce: Any) -> None:
    """Fit an estimator to rows that are in this process.

    If the workers have GPUs, the partition is computed on the GPU of a worker.
    """
    learn = partial(estimator.learn, parts)
    # in this process if random_state is a generator, because a worker would draw from a copy of the generator
    drawn_here = not isinstance(getattr(parts.partitioner, "random_state", None), (int, np.integer, type(None)))
    if chunks.client is not None and estimator.device == "auto" and chunks.kind == "cuda" and not drawn_here:
        learn = partial(_learn_there, estimator, chunks, parts)
    device = chunks.here(estimator.device)
    estimator.fit_reduced(parts, ensemble, reduce, learn, device=device, weighted=chunks.weighted)


def _learn_there(estimator: Any, chunks: Chunks, parts: Any, rows: Rows) -> Any:
    """Learn on the GPU of a worker, where other processes may use nearly all of the memory."""
    distinct = worker.Distinct(devices.to_host(rows.ensemble.codes), rows.counts)
    for attempts_left in reversed(range(ATTEMPTS)):
        sent = chunks.somewhere(distinct)
        task = chunks.task(worker.learn, clone(estimator), parts, sent, chunks.bare(), phase="fit")
        try:
            ((learned, warnings),) = chunks.compute([task], "fit")
            break
        except ConnectionError:  # also if the worker died that was sent the rows, which no other worker has
            if sent.status != "cancelled" or not attempts_left:
                raise
    for sentence in warnings:
        checks.warn(sentence)
    return learned


def _fit_in_pieces(estimator: Any, parts: Any, chunks: Chunks) -> None:
    """Fit an estimator to core groups in pieces: learn a rule from sums over the pieces, and label the chunks by it."""
    if not parts.learns_by_sums:
        raise MemoryError(
            f"{type(estimator).__name__} needs all label rows in one process, but the {sum(chunks.sizes)} distinct "
            "rows of the chunks do not fit its memory; pass reduction=Sample(…), use a method that takes rows in "
            "pieces (LWGP, HBGF, KCC), or set a larger GPUENS_MEMORY."
        )
    device = chunks.there(estimator.device)
    chunks.merged = []
    rows = ChunkPieces(chunks, device)
    learned = estimator.learn(parts, rows)
    numbering = Rows.of(rows.ensemble, rows.counts, "cpu")
    reduction = ScatteredReduction(numbering, None, chunks=chunks, device=device)
    fit = estimator.fit_of(parts, reduction, learned, chunks.weighted)
    fit.renumber(reduction.numbers_of(learned.partition.rule, rows, learned.partition.n_clusters))
    fit.clusters = reduction.of_rows(fit.rule)
    estimator.take_fit(fit, rows.ensemble)


def joint_rows(labels: Any, clustering: Any, client: Any = None) -> tuple[Rows, np.ndarray, np.ndarray]:
    """Return the distinct label rows of the clusterings of two Dask arrays, of n and of one clusterings, in chunks.

    The result is the rows (G, n), the numbers of their cluster in the further clustering (G,), and their numbers of
    objects (G,). Equal rows occur once for each cluster of the further clustering.
    """
    import dask.array as da

    with checks.recorded():  # the caller has seen the warnings about the clusterings
        joint = Chunks(da.concatenate([labels, clustering], axis=1), client).groups
    codes, categories, names = joint.ensemble.codes, joint.ensemble.categories, joint.ensemble.names
    rows = Ensemble.of_codes(codes[:, :-1], categories[:-1], names[:-1])
    return Rows.of(rows, joint.counts, "cpu"), codes[:, -1].astype(np.int64), joint.counts


def intersections(labels: Any, *, layout: str = "auto", client: Any = None) -> Table:
    """Return the intersections of all clusters, counted chunk by chunk; see `gpuens.contingency.intersections`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from gpuens import distributed
    >>> distributed.intersections(da.from_array(np.array([[0, 1], [0, 0], [1, 0], [0, 0]]), chunks=(2, 2)))
    array([[3, 0, 2, 1],
           [0, 1, 1, 0],
           [2, 1, 3, 0],
           [1, 0, 0, 1]])
    """
    checks.check_choice(layout, "layout", ("auto", "dense", "sparse"))
    chunks = Chunks(labels, client)
    if layout == "auto":
        layout = layout_for(sum(len(c) for c in chunks.numbering.categories))
    bare = chunks.bare()
    parts = [
        chunks.task(worker.count_intersections, rows, bare, layout, phase="intersections") for rows in chunks.rows()
    ]
    return chunks.compute([chunks.tree(parts, worker.add, "intersections")], "intersections")[0]
