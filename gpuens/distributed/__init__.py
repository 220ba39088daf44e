"""Labels in chunks of rows, on a Dask cluster or in the threads of this process. The only package that imports Dask.

    chunk ─▶ its distinct rows, counted ─▶ merged, few at a time ─▶ core groups ─▶ method ─▶ chunk by chunk: labels
                                                     └▶ too many for one process ─▶ sums over pieces ─▶ a rule ─┘

Each chunk is reduced to its core groups on its worker, by the code that reduces an ensemble in memory. Only core groups
are merged, and only the rows that the method clusters come to the caller. If the core groups do not fit one process,
they stay in pieces, and methods that need only sums over rows (`gpuens.labels.rows`) work on these. The labels of the
objects are a lazy Dask array with the chunks of the input, which holds everything needed to compute them: each chunk's
rows are looked up again, on any cluster. Chunks may be NumPy or CuPy arrays.

The client is ``client=`` or the active one; without any, the threads of this process do the work.
"""

from gpuens.distributed.chunks import Chunks
from gpuens.distributed.clients import connected
from gpuens.distributed.features import by_chunks, features_in_chunks, on_workers, rows_in_chunks
from gpuens.distributed.files import on_gpus, read_features, read_labels, write_labels
from gpuens.distributed.fitting import fit, intersections
from gpuens.distributed.graph import as_declared
from gpuens.distributed.planning import Plan, plan
from gpuens.distributed.reductions import ScatteredReduction
from gpuens.distributed.waiting import results

__all__ = [
    "Chunks",
    "Plan",
    "ScatteredReduction",
    "as_declared",
    "by_chunks",
    "connected",
    "features_in_chunks",
    "fit",
    "intersections",
    "on_gpus",
    "on_workers",
    "plan",
    "read_features",
    "read_labels",
    "results",
    "rows_in_chunks",
    "write_labels",
]


def __dir__() -> list[str]:
    return sorted(__all__)
