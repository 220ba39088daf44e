"""Dask arrays whose tasks keep the workers that `Tasks.task` names for them."""

from typing import Any

import dask.array as da


class Placed(da.Array):
    """An array in which each chunk is computed by the worker that holds the chunk from which it is computed.

    Dask's own optimization of arrays forgets the names of workers. So does any array that is computed from this one.
    """

    __slots__ = ()

    @staticmethod
    def __dask_optimize__(graph: Any, keys: Any, **_: Any) -> Any:
        return graph
