"""The weight of a cluster in compiled sums; integer weights are always 1 and are not read."""

from typing import Any

from gpuens.runtime.compiled import intrinsic, types


@intrinsic
def weight_of(typing: Any, weights: Any, cluster: Any) -> Any:
    """Return ``weights[cluster]`` of a float array (N_c,), and 1 for an integer array; the index is not checked.

    In `all_pairs` integer weights may be 0, but only for clusters that its sums leave out.
    """
    kind = weights.dtype

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if isinstance(kind, types.Integer):
            return context.get_constant(kind, 1)
        array = context.make_array(weights)(context, builder, args[0])
        return builder.load(builder.gep(array.data, [args[1]]))

    return kind(weights, cluster), generate
