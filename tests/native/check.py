"""The program of `make check-native`: the extension under sanitizers, with and without planted faults.

    python tests/native/check.py [asan] [tsan]

The extension is compiled with AddressSanitizer and UndefinedBehaviorSanitizer, or with ThreadSanitizer, beside a copy
of the package. ``asan`` runs the tests of primitives, and then all methods twice (tests/same_results.py): once with all
new memory filled with zeros, once with another byte. Results that differ have read memory that nobody had written.
``tsan`` runs the tests on several threads.

Both then compile the extension again with the faults of `FAULTS` in its source, each of which must be found.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
SANITIZED = {"asan": "address,undefined", "tsan": "thread"}
LIBRARIES = {"asan": ["libasan.so", "libubsan.so"], "tsan": ["libtsan.so"]}
OPTIONS = ["-O1", "-g", "-fno-omit-frame-pointer"]
FILLED = (0, 127)  # bytes of new memory; of the second, a double is 1e306
REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:")
# files of tests that call primitives on small data, in any way
TESTS = [f"tests/test_{name}.py" for name in (
    "average_linkage", "ca_tree", "contingency", "core_groups", "coupled", "dendrogram", "evidence", "few_rows",
    "label_kmeans", "landmarks", "links", "mapping", "metis", "mirkin", "mixture", "native", "nested",
    "observed_linkage", "rock", "similarity", "single_complete_linkage", "soft_correspondence", "tables",
)]  # fmt: skip


class Fault(NamedTuple):
    """A fault that is planted in a file of kernels/cpu, and a call that runs into it."""

    mode: str  # the sanitizer that finds it
    found: str  # words of its report, or of the check
    file: str
    right: str
    wrong: str
    call: str


FAULTS = {
    "out of bounds": Fault(
        "asan", "heap-buffer-overflow", "rows.cpp", "i < n; ++i) word[i] = std::min", "i <= n; ++i) word[i] = std::min",
        "pack_rows(codes, np.full(20, 31))",
    ),
    "signed overflow": Fault(
        "asan", "signed integer overflow", "label_space.cpp", "+= weights[g];", "+= weights[g] * 0x7fffffffffffffff;",
        "cpu.label_histograms(codes.T, offsets, np.full(n, 2), np.zeros(n, int), np.zeros((600, 1), int))",
    ),
    "leak": Fault(
        "asan", "detected memory leaks", "words.cpp", "std::vector<Run> left{{0, order.size, 0}};",
        "auto& left = *new std::vector<Run>{{0, order.size, 0}};",
        "cpu.lexicographic(np.zeros((1, n), np.uint64), np.empty(n, int), np.empty(n, bool))",
    ),
    "memory that nobody has written": Fault(
        "asan", "results differ", "products.cpp", "std::fill(own, own + n, 0.0);", "",
        "row_sums(codes, offsets, np.ones(600))",
    ),
    "race": Fault(
        "tsan", "data race", "products.cpp", "into.data + offsets[m]);", "into.data + offsets[0]);",
        "cluster_sums(codes, offsets, np.ones(n))",
    ),
}  # fmt: skip
CALLED = """
import hashlib, sys, numpy as np
sys.path.insert(0, {tests!r})
from test_native import codes_of, cluster_sums, cpu, pack_rows, row_sums
n = 30_000
codes, offsets = codes_of(n)
print(hashlib.sha256(np.array({call}, dtype=float).tobytes()).hexdigest())
"""


# --- the package ------------------------------------------------------------------------------------------------------


def packaged(mode: str, faults: list[Fault]) -> Path:
    """Return the folder of a copy of the package, whose extension is compiled for a sanitizer, with faults planted."""
    place = BUILD / (f"{mode}-faults" if faults else mode)
    sources = place / "kernels" if faults else ROOT / "kernels"
    if faults:
        shutil.copytree(ROOT / "kernels", sources, dirs_exist_ok=True)
    for fault in faults:
        file = sources / "cpu" / fault.file
        text = file.read_text()
        if text.count(fault.right) != 1:
            raise SystemExit(f"{file} does not have {fault.right!r} once.")
        file.write_text(text.replace(fault.right, fault.wrong))
    flags = " ".join([*OPTIONS, f"-fsanitize={SANITIZED[mode]}", "-fno-sanitize-recover=all"])
    shutil.rmtree(place / "package", ignore_errors=True)
    cmake(
        ["-S", sources, "-B", place, "-G", "Ninja", "--log-level=WARNING", f"-DPython_EXECUTABLE={sys.executable}",
         "-DCMAKE_BUILD_TYPE=Checked", "-DGPUENS_LEVELS=v2", f"-DCMAKE_CXX_FLAGS={flags}"],
        ["--build", place, "--", "--quiet"],
        ["--install", place, "--prefix", place / "package"],
    )  # fmt: skip
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "gpuens", place / "package" / "gpuens", dirs_exist_ok=True, ignore=ignored)
    return place / "package"


def cmake(*steps: list[object]) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for step in steps:
        subprocess.run(["cmake", *map(str, step)], env=environment, check=True, stdout=subprocess.DEVNULL)


# --- runs -------------------------------------------------------------------------------------------------------------


def ran(
    mode: str, package: Path, arguments: list[object], filled: int = FILLED[0], leaks: bool = False
) -> tuple[str, str]:
    """Run Python under a sanitizer with this package; return its output, and what went wrong, or ""."""
    preloaded = [
        subprocess.run(
            ["gcc", f"-print-file-name={library}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for library in LIBRARIES[mode]
    ]
    environment = os.environ | {
        "PYTHONPATH": str(package),
        "PYTHONSAFEPATH": "1",  # the checkout's own package is in the current folder
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": " ".join(preloaded),
        "OPENBLAS_NUM_THREADS": "1",
        "GPUENS_CPU": "v2",
        "GPUENS_THREADS": "3",
        "ASAN_OPTIONS": f"detect_leaks={leaks:d}:max_malloc_fill_size={2**30}:malloc_fill_byte={filled}",
        "LSAN_OPTIONS": "exitcode=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:ignore_noninstrumented_modules=1:die_after_fork=0",
    }
    # a randomised address space may put other memory at the addresses of ThreadSanitizer's shadow memory
    prefix = ["setarch", "-R"] if mode == "tsan" and shutil.which("setarch") else []
    done = subprocess.run(
        [*prefix, sys.executable, *map(str, arguments)], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    said = done.stdout + done.stderr
    lost = leaked(done.stderr) if leaks else ""
    return done.stdout, said if done.returncode or (REPORT.search(said) and not leaks) else lost


def leaked(report: str) -> str:
    """Return the report of memory that the extension lost, or "": Python itself frees little at its end."""
    blocks = [block for block in report.split("\n\n") if "leak of" in block and "kernels/cpu" in block]
    return "\n\n".join(["detected memory leaks", *blocks]) if blocks else ""


def of_tests(mode: str, package: Path) -> tuple[bool, str]:
    """Run the tests of primitives; return whether they pass, and pytest's last line."""
    chosen = ["-k", "not emulated and not stand-in and not stub and not memory_that_runs_out", *TESTS]
    said, wrong = ran(
        mode, package, ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--capture=sys", *chosen]
    )
    if wrong:
        print(wrong)
    return not wrong, said.strip().splitlines()[-1] if said.strip() else ""


def of_methods(package: Path) -> tuple[bool, str]:
    """Run all methods with memory filled with either byte; return whether results are equal, and how many there are."""
    digests = []
    for filled in FILLED:
        said, wrong = ran("asan", package, [ROOT / "tests/same_results.py", "-"], filled)
        if wrong:
            print(wrong)
            return False, "all methods"
        digests.append(said)
    return digests[0] == digests[
        1
    ], f"{digests[0].count(':')} results with memory filled with {FILLED[0]} and {FILLED[1]}"


def of_faults(mode: str) -> tuple[bool, str]:
    """Plant the faults that a sanitizer finds; return whether all are found, and which are not."""
    faults = {name: fault for name, fault in FAULTS.items() if fault.mode == mode}
    clean, faulty = BUILD / mode / "package", packaged(mode, list(faults.values()))
    missed = []
    for name, fault in faults.items():
        code = CALLED.format(tests=str(ROOT / "tests"), call=fault.call)
        for package, expected in (clean, False), (faulty, True):
            leaks = name == "leak"
            runs = [ran(mode, package, ["-c", code], filled, leaks) for filled in FILLED]
            said = "results differ" if runs[0][0] != runs[1][0] else ""
            said += runs[0][1]
            if fault.found not in said if expected else said:
                missed.append(f"{name} ({'not found' if expected else 'found where it is not'})")
    return not missed, f"{len(faults)} planted faults" + (f", {', '.join(missed)}" if missed else " found")


def main(names: list[str]) -> int:
    """Run the sanitizers that the arguments name, or both; return the exit status."""
    summaries, all_passed = [], True
    for mode in names or SANITIZED:
        package = packaged(mode, [])
        checks = [lambda: of_tests(mode, package), lambda: of_faults(mode)]  # noqa: B023
        if mode == "asan":
            checks.insert(1, lambda: of_methods(package))  # noqa: B023
        for check in checks:
            start = time.perf_counter()
            passed, said = check()
            all_passed &= passed
            seconds = time.perf_counter() - start
            summaries.append(f"{mode}: {'passed' if passed else 'FAILED'} in {seconds:.0f} s: {said}")
            print(summaries[-1], flush=True)
    print("", *summaries, sep="\n")
    return 0 if all_passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
