"""Counts of instructions per operation of kernels, such as a label comparison, and the resulting limits of GPUs.

The kernels are compiled by NVRTC 13 as on a user's machine, and the innermost loops of the machine code are counted; no
GPU is needed. Two loops make all comparisons: of a query's labels with what tiles hold, which bounds the tiles, and
with the rows of a tile. A comparison costs a warp the instructions of its loop, over the comparisons of all lanes.
`OPERATIONS` says by which instruction an operation of another kernel, as gpu_launches.py counts them, is known.

--before names a commit, from 01c900d on, whose kernels are compiled too. The part "changes" compares all kernels of the
files that differ, with the registers and the memory that the compiler gives them.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import common
import parts
import report
from parts import Job, Part

from gpuens.runtime import kernels

sys.path.append(str(common.HERE.parent / "tests" / "emulator"))

import check
import nvrtc

Macros: TypeAlias = tuple[tuple[str, str], ...]
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

    A lane makes one for each ``times`` of an instruction in an innermost loop; of several loops the quickest counts.
    If ``of_warp`` is not 0, a warp makes this many in one turn of the smallest loop with the instruction exactly
    ``times`` times. Loops inside this loop make ``turns`` turns.
    """

    instruction: str
    times: int = 1
    of_warp: int = 0
    turns: int = 0


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
    "search_regions": Operation("LDG.E.64"),
    "join_lists": Operation("SHFL.UP", 5, of_warp=1),
    "nearest_objects": Operation("LDG.E.64", of_warp=32),
    "landmark_products": Operation("LDG.E.64", 5, of_warp=30, turns=1),  # six objects of five neighbours
    "clear_ceilings": Operation("STG.E"),
    "find_heights": Operation("DSETP.MIN.AND", 2),
}
STEPS = {"update_lists": Operation("LDS.64")}  # an entry looked up; gpu_launches.py counts entries of lists
# operations of earlier texts, whose loops are not of the kinds above
EARLIER = {
    "count_pairs": Operation("LDG.E.U8", 2),
    "landmark_products": Operation("MUFU.RCP", of_warp=5),  # one object of five neighbours, found by a division
    "update_lists": Operation("LDG.E", 6, of_warp=32),
}
CHANGES = ("sm_80", "sm_90", "sm_120")  # architectures of the part "changes"


def main() -> None:
    parser = parts.parser(__doc__, PARTS, quick="one architecture")
    parser.add_argument("--before", metavar="COMMIT", default="64031e97", help="whose kernels are counted too")
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
        "now": counted(source("nearest", None), architecture, weight),
        "before": counted(source("nearest", before), architecture, weight),
    }


def source(stem: str, commit: str | None) -> str:
    """Return the text of a file of kernels and of the headers before it, from the working tree or from a commit.

    The text is empty if there is no such file.
    """
    if commit is None:
        return kernels.sources().get(stem, "")
    listed = git("ls-tree", "--name-only", commit, "kernels/common/", "kernels/").split()
    if f"kernels/{stem}.cu" not in listed:
        return ""
    headers = [name for name in listed if name.endswith((".h", ".cuh"))]
    return git("show", *(f"{commit}:{name}" for name in [*headers, f"kernels/{stem}.cu"]))


def git(*words: str) -> str:
    command = ["git", "-C", str(common.HERE.parent), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def counted(text: str, architecture: str, weight: str) -> common.Record:
    """Return, for each step, the warp instructions of 1,024 comparisons, by the unit that executes them."""
    macros = ("CODE", "u8"), ("WEIGHT", weight), ("PLANES", "16")
    loops = loops_of(compiled(text, macros, architecture).code.get("nearest_rows", []))
    reading = [loop for loop in innermost(loops) if reads(loop) and not any(APART.match(op.opcode) for op in loop)]
    loop_of_step, bits = {}, []
    for loop in reading:
        compares_four = any(op.opcode.startswith("IDP") for op in loop)
        if loop is reading[0]:  # the bits of 32 tiles, or a byte of each tile
            loop_of_step["tiles"] = loop, 32 * loads(loop, "LDG.E") + loads(loop, "LDG.E.U8")
        elif "rows" not in loop_of_step and (compares_four or reads(loop) == {"LDG.E.U8"}):  # two words, or a label
            loop_of_step["rows"] = loop, 8 * loads(loop, "LDG.E.64") if compares_four else loads(loop, "LDG.E.U8")
        elif reads(loop) == {"LDG.E.64"} and not compares_four:  # a bit of 64 rows
            bits += [outer for outer in loops if contains(outer, loop) and outer != loop]
    counts = {name: per_operation(loop, LANES * n) for name, (loop, n) in loop_of_step.items() if n}
    if bits:  # the shorter loop is for fewer than 64 clusterings; seven bits for up to 127 clusters
        counts["bits"] = per_operation(min(bits, key=len), 64 * LANES, loops, 7)
    return counts


class Compiled(NamedTuple):
    """The kernels of a text: machine code and resources."""

    code: dict[str, "Loop"]
    uses: dict[str, check.Use]


@lru_cache(8)  # a file before and now, on the architectures of a part
def compiled(text: str, macros: Macros, architecture: str) -> Compiled:
    """Compile a text, which may be empty."""
    if not text:
        return Compiled({}, {})
    options = (*kernels.options(dict(macros)), *kernels.APPENDED)
    program = nvrtc.compile(text, options, architecture, max(nvrtc.LIBRARIES))
    uses, faults = check.read_log(program.log, bool(program.cubin))
    if not uses:
        raise RuntimeError(faults)
    return Compiled(nvrtc.instructions([program.cubin], architecture)[0], {use.kernel: use for use in uses})


def first_variant(text: str) -> Macros:
    """Return the first type of each macro of a file of kernels; labels are bytes."""
    variants = re.search(r"^// variants: (.*)$", text, flags=re.MULTILINE)
    return tuple(re.findall(r"(\w+) = (\w+)", variants[1])) if variants else ()


def of_kernels(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for kernel in OPERATIONS:
        text = kernels.sources()[kernels.functions()[kernel]]
        yield kernel, partial(of_kernel, kernel, text, architectures(options))


def of_kernel(kernel: str, text: str, targets: tuple[str, ...]) -> common.Record:
    """Return the warp instructions of 1,024 operations on each architecture."""
    return {
        architecture: of_operation(compiled(text, first_variant(text), architecture).code[kernel], OPERATIONS[kernel])
        for architecture in targets
    }


def of_operation(code: "Loop", operation: Operation) -> common.Record:
    """Return the warp instructions of 1,024 operations and the bytes of one; nothing if no loop has the instruction."""
    loops, instruction, times = loops_of(code), operation.instruction, operation.times
    if operation.of_warp:
        alike = [loop for loop in loops if loads(loop, instruction) == times]
        costs = [per_operation(loop, operation.of_warp, loops, operation.turns) for loop in sorted(alike, key=len)[:1]]
    else:
        alike = [loop for loop in innermost(loops) if loads(loop, instruction)]
        costs = [per_operation(loop, LANES * loads(loop, instruction) / times) for loop in alike]
    return min(costs, key=lambda counts: counts["all"], default={})


def of_changes(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    """Yield a job for each kernel of the files that differ, now or before."""
    named = git("diff", "--name-only", options.before, "--", "kernels/").split()
    targets = CHANGES[1:2] if options.quick else CHANGES
    for stem in sorted({Path(name).stem for name in named if re.fullmatch(r"kernels/\w+\.cu", name)}):
        texts = {"before": source(stem, options.before), "now": source(stem, None)}
        for kernel in dict.fromkeys(name for text in texts.values() for name in re.findall(KERNEL, text)):
            yield kernel, partial(of_change, kernel, texts, targets)


KERNEL = r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\('


def of_change(kernel: str, texts: dict[str, str], targets: tuple[str, ...]) -> common.Record:
    """Return the resources and instructions of a kernel on each architecture, before and now; {} where missing."""
    return {
        architecture: {state: used(kernel, text, architecture) for state, text in texts.items()}
        for architecture in targets
    }


def used(kernel: str, text: str, architecture: str) -> common.Record:
    program = compiled(text, first_variant(text), architecture)
    if kernel not in program.code:
        return {}
    if kernel == "nearest_rows":
        operation = counted(text, architecture, WEIGHTS["ones"]).get("rows", {})
    else:
        candidates = [operations[kernel] for operations in (OPERATIONS, STEPS, EARLIER) if kernel in operations]
        operation = next(filter(None, (of_operation(program.code[kernel], candidate) for candidate in candidates)), {})
    return {"length": len(program.code[kernel]), "operation": operation} | program.uses[kernel]._asdict()


PARTS = {
    **{name: Part(partial(of_weights, weight)) for name, weight in WEIGHTS.items()},
    "kernels": Part(of_kernels),
    "changes": Part(of_changes),
}


Loop: TypeAlias = list[nvrtc.Instruction]
APART = re.compile(r"ST|VOTE|SHFL|D(ADD|MUL|FMA|SETP)")  # memory writes, lanes that meet, exact scores


def loops_of(code: Loop) -> list[Loop]:
    """Return the instructions of each loop, from the target of a branch backwards to the branch."""
    targets = ((re.search(r"BRA.*?(0x[0-9a-f]+)", op.text), op.address) for op in code)
    ends = [(int(target[1], 16), stop) for target, stop in targets if target]
    loops = [[op for op in code if start <= op.address <= stop] for start, stop in ends if start < stop]
    # code at the end collects the lanes of a warp, and jumps back to where these are needed
    return [loop for loop in loops if not any(op.opcode == "WARPSYNC.COLLECTIVE" for op in loop)]


def contains(loop: Loop, inner: Loop) -> bool:
    return loop[0].address <= inner[0].address and inner[-1].address <= loop[-1].address


def innermost(loops: list[Loop]) -> list[Loop]:
    return [loop for loop in loops if not any(contains(loop, inner) for inner in loops if inner != loop)]


def reads(loop: Loop) -> set[str]:
    """Return the instructions of a loop that read global memory."""
    return {kind(op.opcode) for op in loop if op.opcode.startswith("LDG")}


def loads(loop: Loop, opcode: str) -> int:
    return sum(kind(op.opcode) == opcode for op in loop)


def kind(opcode: str) -> str:
    """Return an instruction without its cache modifiers."""
    return re.sub(r"\.(SYS|CONSTANT|STRONG|WEAK|GPU|EF|EL|LU|NA)\b", "", opcode)


def unit(opcode: str) -> str:
    """Return the unit that executes an instruction; uniform registers, branches and products have their own units."""
    name = opcode.split(".")[0]
    if name.startswith(("B", "U", "IMAD", "LDC")):
        return "other"
    if name.startswith("D"):
        return "double"
    return "memory" if name.startswith("LD") else "whole"


def moved(opcode: str) -> int:
    """Return the bytes that a lane moves from or to global memory by an instruction."""
    if not opcode.startswith(("LDG", "STG", "ATOMG", "RED")):
        return 0
    bits = re.search(r"\.[US]?(8|16|64|128)\b", opcode)
    return int(bits[1]) // 8 if bits else 4


def per_operation(loop: Loop, done: float, loops: Iterable[Loop] = (), turns: int = 0) -> common.Record:
    """Return the warp instructions of 1,024 operations, by units, and the bytes of one.

    A warp makes ``done`` operations in a turn of the loop; ``loops`` inside this loop make ``turns`` turns.
    """
    inside = {op.address for inner in loops if inner != loop and contains(loop, inner) for op in inner}
    counts: Counter = Counter()
    for op in loop:
        n = turns if op.address in inside else 1
        counts.update({unit(op.opcode): n, "all": n, "moved": n * moved(op.opcode)})
    # lanes without an operation move nothing
    return {name: n / max(1, done / LANES) if name == "moved" else 1024 * n / done for name, n in counts.items()}


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


def changes_values(rows: common.Record, record: common.Record) -> common.Record:
    changed = [{"key": key} | row for key, row in rows.items() if any(r["before"] != r["now"] for r in row.values())]
    return {
        "changed": changed,
        "bounds": [bounds_of_change(**line) for line in changed],
        "lists": {"architecture": [name for name in CHANGES if any(name in line for line in changed)]},
    }


def bounds_of_change(key: str, **row: common.Record) -> common.Record:
    """Return the bounds of an operation before and now, on the first GPU, and the change in words."""
    gpu, line = GPUS["H100 SXM"], {"key": key, "words": SPEC["replaced"].get(key)}
    for state, use in row.get(gpu.architecture, {}).items():
        if counts := use.get("operation"):
            line[state] = {"bound": bound(gpu, counts), "by": binds(gpu, counts)}
    return line


SPEC = report.Page("instructions", report).spec
BINDS = {"all": "all instructions", "whole": "whole numbers", "memory": "reads", "double": "float64"}


def binds(gpu: Gpu, counts: common.Record) -> str:
    """Return the name of the instructions that limit the number of operations."""
    taken = cycles(gpu, counts)
    return BINDS[max(taken, key=taken.__getitem__)]


def bound(gpu: Gpu, counts: common.Record) -> float:
    """Return the largest number of comparisons of a GPU, in 10⁹ per second, without any waiting for data."""
    return 1024 / max(cycles(gpu, counts).values()) * gpu.multiprocessors * gpu.gigahertz


def cycles(gpu: Gpu, counts: common.Record) -> dict[str, float]:
    """Return the fewest cycles of a multiprocessor for 1,024 comparisons, for each unit that may limit them."""
    of_units = {unit: counts.get(unit, 0.0) / getattr(gpu, unit) for unit in ("whole", "memory", "double")}
    return {"all": counts["all"] / gpu.issued} | of_units


if __name__ == "__main__":
    main()
