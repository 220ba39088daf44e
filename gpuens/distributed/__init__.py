"""Labels in chunks of rows, on a Dask cluster or in threads of this process; no other package imports Dask.

    chunk ─▶ its distinct rows, counted ─▶ merged, few at a time ─▶ core groups ─▶ method ─▶ chunk by chunk: labels
                                                     └▶ too many for one process ─▶ sums over pieces ─▶ a rule ─┘

- Each chunk is reduced to its core groups on its worker, by the same code that reduces an ensemble in memory. Only core
  groups are merged, and only the rows that the method clusters are sent to the caller.
- If the core groups do not fit one process, they stay in pieces. Methods that need only sums over rows
  (`gpuens.labels.rows`) can work on pieces.
- The labels of the objects are a lazy Dask array with the chunks of the input. The array contains everything that its
  computation needs, so any cluster can look up the rows of each chunk again.
- Chunks may be NumPy or CuPy arrays.
- The client is ``client=`` or the active client; without a client, threads of this process do the work.
"""

from gpuens.distributed.chunks import Chunks
from gpuens.distributed.clients import connected
from gpuens.distributed.features import by_chunks, features_in_chunks, on_workers, rows_in_chunks
from gpuens.distributed.files import on_gpus, read_features, read_labels, write_labels
from gpuens.distributed.fitting import fit, intersections, joint_rows
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
    "joint_rows",
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
