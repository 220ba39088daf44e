"""Labels in chunks of rows, on a Dask cluster or in the threads of this process. The only package that imports Dask.

    chunk ─▶ its distinct rows, counted ─▶ merged, few at a time ─▶ core groups ─▶ method ─▶ chunk by chunk: labels
                                                     └▶ too many for one process ─▶ sums over pieces ─▶ a rule ─┘

Each chunk is reduced to its core groups where it is, by what reduces a whole ensemble elsewhere; only core groups come
together, and of those only what the method works on comes to the caller. Where not even these fit one process they
stay in pieces, and methods that can do with sums over them (`gpuens.rows`) go on. Labels of the objects are a lazy
Dask array with the chunks of the input: whoever computes it looks each chunk's rows up again, in what the array brings
along, so that it need not be the cluster that fitted. Chunks may be NumPy's or CuPy's.

The client is the caller's: ``client=``, or the one that is active; without any the threads of this process work.
"""

from gpuens.distributed.chunks import Chunks
from gpuens.distributed.clients import connected
from gpuens.distributed.features import by_chunks, on_workers
from gpuens.distributed.files import on_gpus, read_labels, write_labels
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
    "fit",
    "intersections",
    "on_gpus",
    "on_workers",
    "plan",
    "read_labels",
    "results",
    "write_labels",
]
