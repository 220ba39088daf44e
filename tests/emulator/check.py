"""The program of `make check-kernels`: the kernels under sanitizers, and compiled by NVRTC for GPUs.

    python tests/emulator/check.py [asan] [tsan] [nvrtc]

No GPU is needed. ``asan`` runs the tests marked "kernels", ``tsan`` those marked "tiny" too. ``nvrtc`` compiles every
variant of every file for every architecture, with the options that CuPy gives; a warning fails, and so does a register
that spills to memory, which is a hundred times slower and says that the kernel wants another shape. The machine code is
read too: `SLOW` are the instructions that no kernel may have.
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from gpuens.runtime import kernels

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(Path(__file__).parent)]

import nvrtc  # noqa: E402, beside this file
from in_turn import in_turn  # noqa: E402

import emulator  # noqa: E402, this folder

PYTEST = ["-m", "pytest", "-p", "no:cacheprovider"]


# --- sanitizers -------------------------------------------------------------------------------------------------------


def sanitized(mode: str, marked: str) -> tuple[bool, str]:
    """Run the tests with a marker under a sanitizer; return whether they pass, and the number of tests."""
    if reason := emulator.why_not(mode):
        return False, reason
    collect = [sys.executable, *PYTEST, "--collect-only", "-q", "-m", f"{marked} and not gpu", "tests"]
    collected = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=False)
    # Leave out CuPy's stand-in, where kernels would get the same arguments again, and the CPU, where no kernel runs.
    tests = [line for line in collected.stdout.splitlines() if "::" in line and not re.search("stand-in|cpu", line)]
    if collected.returncode or not tests:
        print(collected.stdout if collected.returncode != 5 else "", end="")
        return False, f"no test marked {marked!r} was collected"
    command, environment = emulator.python_under(mode)

    def run(share: list[str]) -> int:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
            names.write("\n".join(share))
            names.flush()
            # capture=sys: a sanitizer prints its report without Python, and pytest must not capture this report
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
    ends = ", ".join(str(status) for status in statuses if status)
    return not ends, f"{len(tests)} tests" + (f", pytest ended with {ends}" if ends else "")


# --- NVRTC ------------------------------------------------------------------------------------------------------------


class Use(NamedTuple):
    """The resources of a multiprocessor that a compiled kernel uses."""

    kernel: str
    registers: int
    spilled: int  # bytes of registers stored to and loaded from local memory
    shared: int  # bytes of static shared memory


def compiled(source: str, options: tuple[str, ...], architecture: str, major: int = 13) -> tuple[list[Use], str, bytes]:
    """Compile a source as CuPy does; return its kernels' resources, the error or "", and the machine code."""
    program = nvrtc.compile(source, (*options, *kernels.APPENDED), architecture, major)
    return *read_log(program.log, bool(program.cubin)), program.cubin


def read_log(log: str, succeeded: bool) -> tuple[list[Use], str]:
    """Read a compiler's log; return the resources of the kernels, and the compiler's error message or ""."""
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


# Slow instructions: 64-bit atomics in shared memory become loops of compare-and-swap. Local memory holds spilled
# registers, and arrays whose indices the compiler does not know.
SLOW = re.compile(r"ATOMS\.CAST\.SPIN|LDL|STL")


def slow(code: dict[str, list[nvrtc.Instruction]]) -> str:
    """Return a text that names kernels with `SLOW` instructions, or ""."""
    found = {kernel: sorted({one.opcode for one in of if SLOW.match(one.opcode)}) for kernel, of in code.items()}
    return "\n".join(f"{kernel} has {', '.join(opcodes)}" for kernel, opcodes in found.items() if opcodes)


class Job(NamedTuple):
    stem: str
    macros: dict[str, str]
    architecture: str
    major: int  # NVRTC's major version

    @property
    def options(self) -> tuple[str, ...]:
        return kernels.options(self.macros)

    def __str__(self) -> str:
        macros = " ".join(f"{name}={value}" for name, value in self.macros.items())
        return f"{self.stem}.cu {macros} {self.architecture} NVRTC {self.major}".replace("  ", " ")


def jobs() -> list[Job]:
    """Return the jobs: each variant for each architecture; the jobs use the two compilers alternately.

    So each file is compiled by each compiler on each architecture; a file without variants has a job for both.
    """
    todo = []
    for stem in kernels.sources():
        variants = kernels.variants(stem)
        for (v, macros), (a, architecture) in itertools.product(enumerate(variants), enumerate(nvrtc.ARCHITECTURES)):
            majors = tuple(nvrtc.LIBRARIES)
            for major in majors if len(variants) == 1 else (majors[(v + a) % len(majors)],):
                todo.append(Job(stem, macros, architecture, major))
    return todo


def gate() -> tuple[bool, str]:
    """Compile all variants and print the table; return whether there is no error, and a summary."""
    if reason := nvrtc.why_not():
        return False, reason
    todo, expected = jobs(), kernels.functions()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        programs = list(pool.map(lambda job: compiled(kernels.sources()[job.stem], job.options, *job[2:]), todo))
        code = pool.map(
            lambda architecture: nvrtc.instructions(
                [cubin for job, (*_, cubin) in zip(todo, programs, strict=True) if job.architecture == architecture],
                architecture,
            ),
            nvrtc.ARCHITECTURES,
        )
    of_architecture = {architecture: iter(found) for architecture, found in zip(nvrtc.ARCHITECTURES, code, strict=True)}
    faults, used, length = defaultdict(list), defaultdict(list), defaultdict(int)
    for job, (uses, wrong, _) in zip(todo, programs, strict=True):
        instructions = next(of_architecture[job.architecture])
        missing = {name for name, home in expected.items() if home == job.stem} - {use.kernel for use in uses}
        for said in (wrong, slow(instructions), f"{missing} are missing" if missing else ""):
            if said:
                faults[said].append(str(job))
        for use in uses:
            used[use.kernel].append(use)
            length[use.kernel] = max(length[use.kernel], len(instructions.get(use.kernel, [])))
    print(f"{'kernel, at most':28} {'registers':>9} {'spill bytes':>11} {'static shared':>13} {'instructions':>12}")
    for kernel, uses in sorted(used.items()):
        registers, spilled, shared = (max(each) for each in list(zip(*uses, strict=True))[1:])
        print(f"{kernel:28} {registers:9} {spilled:11} {shared:13} {length[kernel]:12}")
    for said, where in faults.items():
        print(f"\n({len(where)}: {', '.join(where[:4])}{', …' * (len(where) > 4)}):\n{said}")
    n_kernels, n_wrong = sum(map(len, used.values())), len({job for where in faults.values() for job in where})
    return not faults, f"{n_kernels} kernels compiled, {len(todo)} programs, {n_wrong} of them at fault"


# --- all --------------------------------------------------------------------------------------------------------------

# a failing check prints its messages at once, so that NVRTC's long table is printed first
CHECKS = {
    "nvrtc": gate,
    "asan": lambda: sanitized("asan", "kernels"),
    "tsan": lambda: sanitized("tsan", "tiny"),
}


if __name__ == "__main__":
    sys.exit(in_turn(CHECKS, sys.argv[1:]))
