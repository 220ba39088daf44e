"""Weight of a cluster in compiled sums: integer weights are always 1, so they are not read from memory."""

from typing import Any

from gpuens.runtime.compiled import intrinsic, types


@intrinsic
def weight_of(typing: Any, weights: Any, cluster: Any) -> Any:
    """Return ``weights[cluster]`` if ``weights`` (N_c,) are floats, and 1 if they are integers; do not check the index.

    In `all_pairs` integer weights may be 0, but only for clusters that are not in its sums.
    """
    kind = weights.dtype

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if isinstance(kind, types.Integer):
            return context.get_constant(kind, 1)
        array = context.make_array(weights)(context, builder, args[0])
        return builder.load(builder.gep(array.data, [args[1]]))

    return kind(weights, cluster), generate
