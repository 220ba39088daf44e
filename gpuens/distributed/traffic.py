"""The bytes that each stage of a fit to labels on several GPUs copies and holds, counted before the work.

Every GPU has a worker and one chunk of labels. Tables are counted if their size depends on more than one clustering.
"""

from typing import NamedTuple

from gpuens.kmeans.weighted import RESTARTS_ON
from gpuens.partition.transfer_cut import STEP_BYTES, all_at_once

BYTES_OF_COUNT = 8  # bytes of a count, a position, a label of the consensus or a number of float64
COPIES_OF_COUNTS = 6  # largest number of times that a transfer cut copies the counts of rows to a GPU


class Sizes(NamedTuple):
    """The sizes of labels on several GPUs."""

    n_objects: int  # N
    n_clusterings: int  # M
    n_clusters: int  # C, of all clusterings
    n_rows: int  # G, distinct rows of all objects
    n_rows_of_chunk: int  # g, distinct rows of a chunk
    n_gpus: int  # P
    n_words: int  # w, 64-bit words of a packed row
    label_bytes: int = 1  # ℓ, of a label as given
    code_bytes: int = 1  # s, of the code of a cluster

    @property
    def n_objects_of_chunk(self) -> int:
        """n, the largest number of objects of a chunk."""
        return -(-self.n_objects // self.n_gpus)

    @property
    def row_bytes(self) -> int:
        """r, the bytes of the codes of a row."""
        return self.n_clusterings * self.code_bytes


class Stage(NamedTuple):
    """The bytes that the busiest GPU, the busiest worker and the client copy in a stage, and the memory of that GPU."""

    name: str
    to_gpu: int = 0  # from the worker's memory
    to_host: int = 0  # from the GPU's memory
    received: int = 0  # by a worker from other workers
    to_client: int = 0
    from_client: int = 0
    on_gpu: int = 0


def bytes_on_gpu(n_objects: int, n_clusterings: int, n_words: int, label_bytes: int, code_bytes: int) -> int:
    """Return the most bytes of GPU memory while a chunk of labels is reduced to its core groups.

    Labels and codes are there all the time. Kernels read copies of labels of 2 bytes. The largest of these steps also
    needs: the sort (packed rows twice, their order and a buffer), the numbering of groups (packed rows, five columns of
    8 bytes and a mask), or the codes of the groups (packed rows, two columns and two copies, if all rows differ).
    """
    labels, codes, words = n_clusterings * label_bytes, n_clusterings * code_bytes, 8 * n_words
    copied = 4 * n_clusterings if label_bytes == 2 else 0
    return n_objects * (labels + codes + max(copied, 2 * words + 16, words + 41, words + 16 + 2 * codes))


def merged(sizes: Sizes, n_dimensions: int) -> list[Stage]:
    """Return the stages of a transfer cut of core groups that fit one process.

    ``n_dimensions`` is the number of eigenvectors, and of clusters of the consensus.
    """
    reduced, P, G, g = _reduced(sizes), sizes.n_gpus, sizes.n_rows, sizes.n_rows_of_chunk
    row = sizes.row_bytes + BYTES_OF_COUNT
    return [
        reduced,
        Stage(
            "merge on one GPU",
            to_gpu=P * g * row + BYTES_OF_COUNT * G,
            to_host=G * (row + BYTES_OF_COUNT),
            received=(P - 1) * g * row,
            on_gpu=bytes_on_gpu(P * g, sizes.n_clusterings, sizes.n_words, 0, sizes.code_bytes)
            + BYTES_OF_COUNT * P * g,
        ),
        Stage("core groups to the client", to_client=G * row),
        Stage(
            "method on one GPU",
            to_gpu=G * (sizes.row_bytes + COPIES_OF_COUNTS * BYTES_OF_COUNT),
            to_host=BYTES_OF_COUNT * G,
            to_client=BYTES_OF_COUNT * G,
            from_client=G * row,
            on_gpu=G * (sizes.row_bytes + BYTES_OF_COUNT * n_dimensions + 64),
        ),
        Stage(
            "labels of objects",
            to_gpu=reduced.to_gpu + G * sizes.row_bytes + BYTES_OF_COUNT * g,
            to_host=2 * BYTES_OF_COUNT * g,
            received=G * row,
            from_client=G * row,
            on_gpu=reduced.on_gpu,
        ),
    ]


def in_pieces(sizes: Sizes, n_dimensions: int) -> list[Stage]:
    """Return the stages of a transfer cut of distinct rows in pieces, each pass over the pieces counted once.

    Two pieces that fit a GPU are merged, because they may have rows in common; these stages are those of rows that all
    differ. Eigenvectors come from the dense matrix of clusters, or from Lanczos's method, which needs a pass for each
    product.
    """
    reduced, P, g, d = _reduced(sizes), sizes.n_gpus, sizes.n_rows_of_chunk, n_dimensions
    codes, counts, vector = g * sizes.row_bytes, BYTES_OF_COUNT * g, BYTES_OF_COUNT * sizes.n_clusters
    labels = sizes.n_objects_of_chunk * sizes.n_clusterings * sizes.label_bytes
    held = labels + codes + 4 * counts + min(STEP_BYTES, 32 * d * g)
    drawn = RESTARTS_ON * (sizes.row_bytes + BYTES_OF_COUNT)
    dense = all_at_once(sizes.n_clusters, d, in_memory=False)
    sent, table = (vector, vector * sizes.n_clusters) if dense else (2 * vector, vector)
    rule, sums = 2 * d * vector + BYTES_OF_COUNT * d * d, BYTES_OF_COUNT * d * (d + 1)

    def summed(name: str, sent: int, found: int) -> Stage:
        """Return a stage in which all pieces are sent a table, and the tables that they give are added up."""
        return Stage(name, sent + counts, found, (P - 1) * found, found, sent, held)

    return [
        reduced,
        Stage(
            "merge of two pieces",
            to_gpu=2 * g * (sizes.row_bytes + 2 * BYTES_OF_COUNT),
            to_host=2 * g * (sizes.row_bytes + 2 * BYTES_OF_COUNT),
            received=g * (sizes.row_bytes + BYTES_OF_COUNT),
            on_gpu=bytes_on_gpu(2 * g, sizes.n_clusterings, sizes.n_words, 0, sizes.code_bytes) + 2 * counts,
        ),
        Stage("pieces to the GPUs", to_gpu=codes, on_gpu=labels + codes),
        Stage(
            "draw of objects",
            to_gpu=BYTES_OF_COUNT * RESTARTS_ON // P,
            to_host=drawn // P,
            to_client=drawn,
            from_client=BYTES_OF_COUNT * RESTARTS_ON,
            on_gpu=held,
        ),
        summed("sizes of base clusters", 0, vector),
        summed("matrix of clusters" if dense else "each product", sent, table),
        summed("each iteration of k-means", rule, sums),
        Stage("sizes of clusters", to_gpu=rule, to_host=counts, from_client=rule, on_gpu=held),
        Stage(
            "labels of objects",
            to_gpu=reduced.to_gpu + rule + counts,
            to_host=2 * counts,
            from_client=rule,
            on_gpu=reduced.on_gpu,
        ),
    ]


def _reduced(sizes: Sizes) -> Stage:
    n, g = sizes.n_objects_of_chunk, sizes.n_rows_of_chunk
    return Stage(
        "core groups of chunks",
        to_gpu=n * sizes.n_clusterings * sizes.label_bytes,
        to_host=g * (sizes.row_bytes + BYTES_OF_COUNT),
        on_gpu=bytes_on_gpu(n, sizes.n_clusterings, sizes.n_words, sizes.label_bytes, sizes.code_bytes),
    )
