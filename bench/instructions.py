"""Counts of instructions per operation of kernels, such as a label comparison, and the resulting limits of GPUs.

The kernels are compiled by NVRTC 13 as on a user's machine, and the innermost loops of the machine code are counted; no
GPU is needed. Two loops make all comparisons: of a query's labels with what tiles hold, which bounds the tiles, and
with the rows of a tile. A comparison costs a warp the instructions of its loop, over the comparisons of all lanes.
--before names a commit whose kernels are counted too. `OPERATIONS` says by which instruction an operation of another
kernel is known, one of those that gpu_launches.py counts.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

import common
import parts
import report
from parts import Job, Part

from gpuens.runtime import kernels

sys.path.append(str(common.HERE.parent / "tests" / "emulator"))

import nvrtc

WEIGHTS = {"ones": "i64", "real": "f64"}
LANES = 32


class Gpu(NamedTuple):
    """The issue rates of a GPU: warp instructions per cycle and multiprocessor, by the unit that executes them."""

    architecture: str
    multiprocessors: int
    gigahertz: float
    issued: float = 4.0
    whole: float = 2.0  # instructions on whole numbers and bits
    memory: float = 1.0

    @property
    def double(self) -> float:
        return {"sm_80": 1.0, "sm_90": 2.0, "sm_100": 2.0}.get(self.architecture, 1 / 16)


GPUS = {"H100 SXM": Gpu("sm_90", 132, 1.98), "RTX 4090": Gpu("sm_89", 128, 2.52)}


class Operation(NamedTuple):
    """An operation of a kernel.

    The loop with an instruction ``times`` times is counted; if several have it, the quickest.
    """

    instruction: str
    times: int = 1


OPERATIONS = {
    "row_sums": Operation("LDG.E.U8"),
    "row_lookups": Operation("LDG.E.U8"),
    "cluster_sums": Operation("LDG.E.U8"),
    "count_pairs": Operation("LDG.E"),
    "coassociation_tile": Operation("DADD"),
    "coupled_tile": Operation("LDG.E.U8", 2),
    "pack_rows": Operation("LDG.E.U8"),
    "mark_present": Operation("LDG.E.U8"),
    "neighborhood_bits": Operation("LDG.E.U8", 2),
    "overlaps": Operation("POPC", 2),
    "neighbor_counts": Operation("LDG.E.U8"),
    "neighbor_sums": Operation("LDG.E.64", 2),
    "nearest_centroids": Operation("LDG.E"),
    "label_histograms": Operation("LDG.E.U8"),
    "label_memberships": Operation("LDG.E.U8"),
    "label_correspondences": Operation("LDG.E.U8"),
    "soft_memberships": Operation("LDG.E.64", 2),
    "soft_correspondences": Operation("LDG.E.64", 2),
    "squared_distances": Operation("DMUL"),
    "label_by_products": Operation("LDG.E", 2),
    "label_by_shares": Operation("LDG.E.U8"),
}


def main() -> None:
    parser = parts.parser(__doc__, PARTS, quick="one architecture")
    parser.add_argument("--before", metavar="COMMIT", default="01c900d", help="whose kernels are counted too")
    options = parser.parse_args()
    page = report.Page("instructions", sys.modules[__name__])
    parts.run(
        "instructions", options, PARTS, page.markdown, packages=["gpuens", "nvidia-cuda-nvrtc"],
        setting={"before": options.before},
    )  # fmt: skip


def architectures(options: argparse.Namespace) -> tuple[str, ...]:
    return nvrtc.ARCHITECTURES[:1] if options.quick else nvrtc.ARCHITECTURES


def of_weights(weight: str, options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for architecture in architectures(options):
        yield architecture, partial(of_architecture, architecture, weight, options.before)


def of_architecture(architecture: str, weight: str, before: str) -> common.Record:
    return {
        "now": counted(source(None), architecture, weight),
        "before": counted(source(before), architecture, weight),
    }


def source(commit: str | None) -> str:
    """Return the text of the kernel and of the headers before it, from the working tree or from a commit."""
    if commit is None:
        return kernels.sources()["nearest"]

    def said(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(common.HERE.parent), *words], capture_output=True, text=True, check=True
        ).stdout

    shared = said("ls-tree", "--name-only", commit, "kernels/common/").split()
    return said("show", *(f"{commit}:{name}" for name in [*shared, "kernels/prelude.cuh", "kernels/nearest.cu"]))


def counted(text: str, architecture: str, weight: str) -> common.Record:
    """Return, for each step, the warp instructions of 1,024 comparisons, by the unit that executes them."""
    loops = loops_of(compiled(text, {"CODE": "u8", "WEIGHT": weight}, architecture)["nearest_rows"])
    reading = [loop for loop in innermost(loops) if reads(loop) and not any(APART.match(one.opcode) for one in loop)]
    rows = next((loop for loop in reading if any(one.opcode.startswith("IDP") for one in loop)), None)
    if rows:  # a read has two words of four labels, and the bits of 32 tiles
        tiles = next(loop for loop in reading if reads(loop) == {"LDG.E"})
        compared = 32 * loads(tiles, "LDG.E"), 8 * loads(rows, "LDG.E.64")
    else:  # before, a label, and the byte of a tile
        tiles, *others = reading
        rows = next(loop for loop in others if reads(loop) == {"LDG.E.U8"})
        compared = loads(tiles, "LDG.E.U8"), loads(rows, "LDG.E.U8")
    return {
        name: per_comparison(units(loop), LANES * n)
        for name, loop, n in zip(("tiles", "rows"), (tiles, rows), compared, strict=True)
    }


def compiled(text: str, macros: dict[str, str], architecture: str) -> dict[str, "Loop"]:
    """Return the machine code of each kernel of a text."""
    from gpuens.runtime import kernels

    options = (*kernels.options(macros), *kernels.APPENDED)
    program = nvrtc.compile(text, options, architecture, max(nvrtc.LIBRARIES))
    if not program.cubin:
        raise RuntimeError(program.log)
    return nvrtc.instructions([program.cubin], architecture)[0]


def of_kernels(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    from gpuens.runtime import kernels

    for kernel in OPERATIONS:
        stem = kernels.functions()[kernel]
        macros = next(found for found in kernels.variants(stem) if found.get("CODE", "u8") == "u8")
        yield kernel, partial(of_kernel, kernel, kernels.sources()[stem], macros, architectures(options))


def of_kernel(kernel: str, text: str, macros: dict[str, str], wanted: tuple[str, ...]) -> common.Record:
    """Return the warp instructions of 1,024 operations on each architecture."""
    operation, found = OPERATIONS[kernel], {}
    for architecture in wanted:
        loops = innermost(loops_of(compiled(text, macros, architecture)[kernel]))
        done = ((loop, LANES * loads(loop, operation.instruction) / operation.times) for loop in loops)
        each = [per_comparison(units(loop), n) for loop, n in done if n]
        found[architecture] = min(each, key=lambda counts: counts["all"])
    return found


PARTS = {
    **{name: Part(partial(of_weights, weight)) for name, weight in WEIGHTS.items()},
    "kernels": Part(of_kernels),
}


Loop: TypeAlias = list[nvrtc.Instruction]
APART = re.compile(r"ST|VOTE|SHFL|D(ADD|MUL|FMA|SETP)")  # memory writes, lanes that meet, exact scores


def loops_of(code: Loop) -> list[Loop]:
    """Return the instructions of each loop, from the target of a branch backwards to the branch."""
    targets = ((re.search(r"BRA.*?(0x[0-9a-f]+)", one.text), one.address) for one in code)
    ends = [(int(target[1], 16), stop) for target, stop in targets if target]
    return [[one for one in code if start <= one.address <= stop] for start, stop in ends if start < stop]


def contains(loop: Loop, other: Loop) -> bool:
    return loop[0].address <= other[0].address and other[-1].address <= loop[-1].address


def innermost(loops: list[Loop]) -> list[Loop]:
    return [loop for loop in loops if not any(contains(loop, other) for other in loops if other != loop)]


def reads(loop: Loop) -> set[str]:
    """Return the instructions of a loop that read global memory."""
    return {kind(one.opcode) for one in loop if one.opcode.startswith("LDG")}


def loads(loop: Loop, wanted: str) -> int:
    return sum(kind(one.opcode) == wanted for one in loop)


def kind(opcode: str) -> str:
    """Return an instruction without its cache modifiers."""
    return re.sub(r"\.(SYS|CONSTANT|STRONG|WEAK|GPU|EF|EL|LU|NA)\b", "", opcode)


def units(loop: Loop) -> Counter:
    return Counter(unit(one.opcode) for one in loop)


def unit(opcode: str) -> str:
    """Return the unit that executes an instruction; uniform registers, branches and products have their own units."""
    name = opcode.split(".")[0]
    if name.startswith(("B", "U", "IMAD", "LDC")):
        return "other"
    if name.startswith("D"):
        return "double"
    return "memory" if name.startswith("LD") else "whole"


def per_comparison(counts: dict[str, float], compared: float) -> common.Record:
    return {name: 1024 * n / compared for name, n in counts.items()} | {"all": 1024 * sum(counts.values()) / compared}


# --- the page ---------------------------------------------------------------------------------------------------------


def page_values(record: common.Record) -> common.Record:
    versions = {part["versions"]["nvidia-cuda-nvrtc"] for part in record["parts"].values()}
    return {"nvrtc": " and ".join(sorted(versions))}


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    bounds = [
        {"gpu": gpu}
        | {when: {step: bound(GPUS[gpu], counts) for step, counts in rows[GPUS[gpu].architecture][when].items()}
           for when in ("before", "now")}
        for gpu in GPUS if GPUS[gpu].architecture in rows
    ]  # fmt: skip
    return {"bounds": bounds}


def kernels_values(rows: common.Record, record: common.Record) -> common.Record:
    return {"lists": {"architecture": list(next(iter(rows.values())))}}


def bound(gpu: Gpu, counts: common.Record) -> float:
    """Return the largest number of comparisons of a GPU, in 10⁹ per second, without any waiting for data."""
    return 1024 / max(cycles(gpu, counts).values()) * gpu.multiprocessors * gpu.gigahertz


def cycles(gpu: Gpu, counts: common.Record) -> dict[str, float]:
    """Return the fewest cycles of a multiprocessor for 1,024 comparisons, for each unit that may limit them."""
    of_units = {unit: counts.get(unit, 0.0) / getattr(gpu, unit) for unit in ("whole", "memory", "double")}
    return {"all": counts["all"] / gpu.issued} | of_units


if __name__ == "__main__":
    main()
