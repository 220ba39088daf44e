"""What `make check-kernels` runs: the kernels under sanitizers, and through the compiler that GPUs' programs use.

    python tests/emulator/check.py [asan] [tsan] [nvrtc]

No GPU is needed. ``asan`` runs the tests marked "kernels", ``tsan`` those marked "tiny" too. ``nvrtc`` compiles every
variant of every file for every architecture; a warning fails, and so does a register that spills to memory, which is a
hundred times slower and says that the kernel wants another shape.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from gpuens import kernels

ROOT = Path(__file__).resolve().parents[2]
PYTEST = ["-m", "pytest", "-p", "no:cacheprovider"]
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")


# --- sanitizers -------------------------------------------------------------------------------------------------------


def sanitized(mode: str, marked: str) -> tuple[bool, str]:
    """Run the tests that carry a marker under a sanitizer; return whether they pass, and how many there are."""
    emulator = kernels.emulator()
    if reason := emulator.why_not(mode):
        return False, reason
    collect = [sys.executable, *PYTEST, "--collect-only", "-q", "-m", f"{marked} and not gpu", "tests"]
    collected = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=False)
    # on the stand-in for CuPy the same kernels would be given the same arguments once more, and none on the CPU
    tests = [line for line in collected.stdout.splitlines() if "::" in line and not re.search("stand-in|cpu", line)]
    if collected.returncode or not tests:
        print(collected.stdout if collected.returncode != 5 else "", end="")
        return False, f"no test marked {marked!r} was collected"
    command, environment = emulator.python_under(mode)

    def run(share: list[str]) -> int:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
            names.write("\n".join(share))
            names.flush()
            # capture=sys: a sanitizer's report goes past Python and must not end in a buffer of pytest's
            done = subprocess.run(
                [*command, *PYTEST, "-v", "--capture=sys", f"@{names.name}"],
                cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
        if done.returncode:
            print(*(line for line in done.stdout.splitlines() if not re.search(r" (PASSED|SKIPPED)", line)), sep="\n")
        return done.returncode

    n_shares = min(os.cpu_count() or 1, len(tests))
    with ThreadPoolExecutor(n_shares) as pool:
        statuses = list(pool.map(run, (tests[i::n_shares] for i in range(n_shares))))
    return not any(statuses), f"{len(tests)} tests" + (f", pytest ended with {max(statuses)}" if any(statuses) else "")


# --- NVRTC ------------------------------------------------------------------------------------------------------------


class Use(NamedTuple):
    """What a compiled kernel takes of a multiprocessor."""

    kernel: str
    registers: int
    spilled: int  # bytes stored and loaded
    shared: int  # static, in bytes


def compiled(source: str, options: tuple[str, ...], architecture: str) -> tuple[list[Use], str]:
    """Compile a source for an architecture; return what its kernels use, and what is wrong with it, or ""."""
    from cuda.bindings import nvrtc

    def checked(result: tuple) -> Any:
        if result[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(f"NVRTC: {result[0].name}")
        return result[1] if len(result) > 1 else None

    # ptxas says in the log what the cubin does not: how much was spilled; the cache would skip it
    options = (*options, f"--gpu-architecture={architecture}", "--ptxas-options=-v", "--no-cache")
    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), kernels.PRELUDE.encode(), 0, [], []))
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = bytearray(checked(nvrtc.nvrtcGetProgramLogSize(program)))
    checked(nvrtc.nvrtcGetProgramLog(program, log))
    checked(nvrtc.nvrtcDestroyProgram(program))
    return read_log(log.decode().rstrip("\0"), status == nvrtc.nvrtcResult.NVRTC_SUCCESS)


def read_log(log: str, succeeded: bool) -> tuple[list[Use], str]:
    """Return what kernels use by the compiler's log, and what is wrong, or ""."""
    if not succeeded:
        return [], log
    found, wrong = [], [line for line in log.splitlines() if "warning" in line.lower()]
    for part in re.split(r"Compiling entry function '", log)[1:]:
        kernel = part[: part.index("'")]
        registers, shared = re.search(r"Used (\d+) registers", part), re.search(r"(\d+) bytes smem", part)
        spilled = sum(int(n) for n in re.findall(r"(\d+) bytes spill (?:stores|loads)", part))
        if registers is None or "bytes spill stores" not in part:
            wrong.append(f"the compiler's log does not say what {kernel} uses: {part}")
            continue
        found.append(Use(kernel, int(registers[1]), spilled, int(shared[1]) if shared else 0))
        if spilled:
            wrong.append(f"{kernel} spills {spilled} bytes")
    if not found:
        wrong.append("no kernel was compiled")
    return found, "\n".join(wrong)


def gate() -> tuple[bool, str]:
    """Compile everything and print the table; return whether nothing is wrong, and a summary."""
    todo = [
        (stem, macros, architecture)
        for stem in kernels.sources()
        for macros in kernels.variants(stem)
        for architecture in ARCHITECTURES
    ]

    def compile_one(job: tuple) -> tuple[list[Use], str]:
        stem, macros, architecture = job
        return compiled(kernels.sources()[stem], (*kernels.options(macros), *kernels.APPENDED), architecture)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(compile_one, todo))
    print(f"{'kernel':28} {'variant':24} {'arch':8} {'registers':>9} {'spill bytes':>11} {'static shared':>13}")
    expected, n_kernels, faults = kernels.functions(), 0, defaultdict(list)
    for (stem, macros, architecture), (uses, wrong) in zip(todo, results, strict=True):
        variant = " ".join(f"{name}={value}" for name, value in macros.items())
        for use in uses:
            print(f"{use.kernel:28} {variant:24} {architecture:8} {use.registers:9} {use.spilled:11} {use.shared:13}")
        n_kernels += len(uses)
        missing = {name for name, home in expected.items() if home == stem} - {use.kernel for use in uses}
        if wrong or missing:
            faults[stem, wrong or f"{missing} are missing"].append(f"{variant} {architecture}".strip())
    for (stem, wrong), where in faults.items():
        print(f"\n{stem}.cu ({', '.join(where)}):\n{wrong}")
    n_wrong = sum(map(len, faults.values()))
    return not faults, f"{n_kernels} kernels compiled, {n_wrong} of {len(todo)} programs at fault"


# --- all --------------------------------------------------------------------------------------------------------------

CHECKS = {
    "asan": lambda: sanitized("asan", "kernels"),
    "tsan": lambda: sanitized("tsan", "tiny"),
    "nvrtc": gate,
}


def main(names: list[str]) -> int:
    """Run the checks named, or all of them; return the exit status."""
    if unknown := set(names) - CHECKS.keys():
        print(f"checks are {', '.join(CHECKS)}, not {', '.join(sorted(unknown))}.")
        return 2
    all_passed = True
    for name in names or CHECKS:
        start = time.perf_counter()
        passed, said = CHECKS[name]()
        all_passed &= passed
        summary = f"{name}: {'passed' if passed else 'FAILED'} in {time.perf_counter() - start:.0f} s: {said}"
        print(summary, flush=True)
    return 0 if all_passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
