"""The weight of a cluster in compiled sums: whole weights are ones, and need not be read."""

from typing import Any

from gpuens.runtime.compiled import intrinsic, types


@intrinsic
def weight_of(typing: Any, weights: Any, cluster: Any) -> Any:
    """Return ``weights[cluster]`` of an array (N_c,) of real numbers, 1 of whole ones; the cluster is not checked.

    Where zeros stand among whole weights, in `all_pairs`, these are of clusters that its sums leave out.
    """
    kind = weights.dtype

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if isinstance(kind, types.Integer):
            return context.get_constant(kind, 1)
        array = context.make_array(weights)(context, builder, args[0])
        return builder.load(builder.gep(array.data, [args[1]]))

    return kind(weights, cluster), generate
