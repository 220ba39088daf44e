"""The program of the process that runs Mt-KaHyPar; it imports nothing of gpuens.

    python mtkahypar_process.py HYPERGRAPH PARTS n_parts imbalance objective seed threads

HYPERGRAPH is a file in hMetis's format. The part of each vertex is written to the file PARTS, one part in each line.
"""

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1  # constant of <sys/prctl.h>


def end_with_parent() -> None:
    """Make Linux kill this process when its parent ends, because nobody would read the result then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(hypergraph: str, parts: str, n_parts: str, imbalance: str, objective: str, seed: str, threads: str) -> None:
    end_with_parent()
    import mtkahypar

    initializer = mtkahypar.initialize(int(threads), print_warnings=False)
    mtkahypar.set_seed(int(seed))
    context = initializer.context_from_preset(mtkahypar.PresetType.DETERMINISTIC)
    context.set_partitioning_parameters(int(n_parts), float(imbalance), getattr(mtkahypar.Objective, objective))
    context.logging = False
    partition = initializer.hypergraph_from_file(hypergraph, context, mtkahypar.FileFormat.HMETIS).partition(context)
    with open(parts, "w") as file:
        file.writelines(f"{part}\n" for part in partition.get_partition())


if __name__ == "__main__":
    main(*sys.argv[1:])
