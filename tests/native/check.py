"""The program of `make check-native`: the extension under sanitizers, with and without planted faults.

    python tests/native/check.py [levels] [asan] [asan-methods] [asan-ensembles] [asan-files] [asan-faults] [clang]
                                 [arm64] [tsan] [tsan-faults]

``levels`` runs tests that call all primitives on the levels of the processor that are compiled in this checkout, and
compares their bits (tests/levels.py); `make native LEVELS="v2 v3 v4"` compiles them.

The extension is compiled with AddressSanitizer and UndefinedBehaviorSanitizer, or with ThreadSanitizer, beside a copy
of the package. ``asan`` and ``tsan`` run the tests of primitives, on several threads. ``asan-methods`` runs all methods
twice (tests/same_results.py): once with all new memory filled with zeros, once with another byte. Results that differ
have read memory that nobody had written. ``asan-ensembles`` tries, for a minute, ensembles of sizes near the limits of
algorithms (tests/fuzz_ensembles_worker.py), and ``asan-files`` reads files of tests/corpus and mutations of them.
AddressSanitizer sees the code of the best level of this processor, or of
the level that GPUENS_LEVELS names; ThreadSanitizer that of v2. ``asan-faults`` and ``tsan-faults`` compile the files
again that have the faults of `FAULTS`, each of which must be found. ``clang`` and ``arm64`` compile the primitives by
another compiler, and for another processor; they pass where the compiler is not installed.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SEARCHED = [str(ROOT / "tests"), str(ROOT / "tests" / "kernels")]
sys.path[:0] = SEARCHED

import emulator  # noqa: E402
from in_turn import in_turn  # noqa: E402
from levels import is_primitive  # noqa: E402

from gpuens.runtime import native  # noqa: E402

BUILD = ROOT / "build" / "sanitized"
SANITIZED = {"asan": "address,undefined", "tsan": "thread"}
LEVELS = {"asan": os.environ.get("GPUENS_LEVELS", "native"), "tsan": "v2"}
OTHER_COMPILERS = {
    "clang": [f"clang++-{version}" for version in range(16, 23)] + ["clang++"],
    "arm64": ["aarch64-linux-gnu-g++"],
}
# Lines of code are enough for reports. AddressSanitizer finds what the checks of null and object-size do, which are a
# third of the time that g++ takes.
OPTIONS = ["-O1", "-g1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all", "-fno-sanitize=null,object-size"]
FUZZED_SECONDS = 60
MUTATIONS = 10  # changed copies of each file of the corpus
FILLED = (0, 127)  # bytes of new memory; of the second, a double is 1e306
REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:")


def file_of(name: str) -> str:
    """Return the path of a file of tests."""
    (path,) = (ROOT / "tests").glob(f"*/test_{name}.py")
    return str(path.relative_to(ROOT))


# files of tests that call primitives on small data, in any way
TESTS = [file_of(name) for name in (
    "average", "ca_tree", "coassociation", "constrained", "contingency", "core_groups", "coupled", "dendrogram",
    "directions", "few_rows", "label_kmeans", "landmarks", "links", "louvain", "mapping", "metis", "mirkin", "mixture",
    "native", "nested", "objects", "observed", "pairs", "rock", "single", "soft_correspondence", "text", "threads",
)]  # fmt: skip

# tests that together call all primitives, and all methods of the registry
TESTS_OF_LEVELS = [file_of(name) for name in (
    "average", "constrained", "cophenetic", "dendrogram", "fuzz", "fuzz_ensembles", "landmarks", "links", "louvain",
    "mapping", "median", "native_partition", "native_points", "objects", "observed", "pair_table", "pairs",
    "soft_correspondence", "weighted",
)] + [f"{file_of(name)}::test_{test}" for name, test in (
    ("contingency", "entropies_of_intersections_counted_before_have_the_same_bits"),
    ("contingency", "one_clustering_against_all"),
    ("kernels", "neighbors_in_each_cluster_by_labels_and_by_bits"), ("spatial", "rows_of_regions_are_means"),
)]  # fmt: skip
NOT_OF_LEVELS = ["memory", "signal", "other_types", "emulated", "cuda", "crash"]  # words in names of other tests


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
        "asan", "heap-buffer-overflow", "labels/rows.cpp",
        "for (; i < stop; ++i) pack_one", "for (; i <= stop; ++i) pack_one",
        "pack_rows(codes, np.full(20, 31))",
    ),
    "signed overflow": Fault(
        "asan", "signed integer overflow", "labels/label_space.cpp",
        "+= weights[g];", "+= weights[g] * 0x7fffffffffffffff;",
        "cpu.label_histograms(codes.T, offsets, np.full(n, 2), np.zeros(n, int), np.zeros((600, 1), int))",
    ),
    "leak": Fault(
        "asan", "detected memory leaks", "labels/words.cpp", "std::vector<Run> left{{0, order.size, 0}};",
        "auto& left = *new std::vector<Run>{{0, order.size, 0}};",
        "cpu.lexicographic(np.zeros((1, n), np.uint64), np.empty(n, int), np.empty(n, bool))",
    ),
    "table of few cells without bits": Fault(
        "asan", "intersections.cpp", "contingency/intersections.cpp",
        "is_small && marked.both(i, j)", "is_small && !weights && marked.bits.rows",
        "tables_of_seeds(60)",
    ),
    "memory that nobody has written": Fault(
        "asan", "results differ", "labels/products.cpp", "std::fill(block, block + n, 0.0);", "",
        "row_sums(codes, offsets, np.ones(600))",
    ),
    "race": Fault(
        "tsan", "data race", "labels/products.cpp", "into.data + offsets[m]);", "into.data + offsets[0]);",
        "cluster_sums(codes, offsets, np.ones(n))",
    ),
}  # fmt: skip
CALLED = """
import hashlib, sys, numpy as np
sys.path[:0] = {searched}
from drawn_ensembles import tables_of_seeds
from test_native import codes_of, cluster_sums, cpu, pack_rows, row_sums
n = 30_000
codes, offsets = codes_of(n)
for call in {calls}:
    print(hashlib.sha256(np.array(eval(call), dtype=float).tobytes()).hexdigest())
"""


# --- the package ------------------------------------------------------------------------------------------------------


def packaged(mode: str, *faults: Fault) -> Path:
    """Return the folder of a copy of the package, whose extension is compiled for a sanitizer, with faults planted.

    Both are built in one place from a copy of the sources, so that only files with faults are compiled twice.
    """
    place = BUILD / f"{mode}-{LEVELS[mode]}"
    package = place / ("faults" if faults else "package")
    texts = {file.relative_to(ROOT): file.read_text() for file in (ROOT / "kernels").rglob("*") if file.is_file()}
    for fault in faults:
        name = Path("kernels", "cpu", fault.file)
        if texts[name].count(fault.right) != 1:
            raise SystemExit(f"{name} does not have {fault.right!r} once.")
        texts[name] = texts[name].replace(fault.right, fault.wrong)
    for copy in (place / "kernels").rglob("*"):
        if copy.is_file() and copy.relative_to(place) not in texts:
            copy.unlink()
    for name, text in texts.items():
        copy = place / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_text() != text:  # files that are written are compiled again
            copy.write_text(text)
    flags = " ".join([f"-fsanitize={SANITIZED[mode]}", *OPTIONS])
    shutil.rmtree(package, ignore_errors=True)
    cmake(
        ["-S", place / "kernels", "-B", place, "-G", "Ninja", "--log-level=WARNING",
         f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Checked", f"-DGPUENS_LEVELS={LEVELS[mode]}",
         f"-DCMAKE_CXX_FLAGS={flags}"],
        ["--build", place, "--", "--quiet"],
        ["--install", place, "--prefix", package],
    )  # fmt: skip
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "gpuens", package / "gpuens", dirs_exist_ok=True, ignore=ignored)
    return package


def cmake(*steps: list[object]) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for step in steps:
        subprocess.run(["cmake", *map(str, step)], env=environment, check=True, stdout=subprocess.DEVNULL)


# --- runs -------------------------------------------------------------------------------------------------------------


def ran(
    mode: str, package: Path, arguments: list[object], filled: int = FILLED[0], leaks: bool = False
) -> tuple[str, str]:
    """Run Python under a sanitizer with this package; return its output, and what went wrong, or ""."""
    python, environment = emulator.python_under(mode)
    environment |= {
        "GPUENS_EMULATOR": "none",  # kernels of GPUs have their own check (tests/emulator/check.py)
        "PYTHONPATH": str(package),
        "PYTHONSAFEPATH": "1",  # the checkout's own package is in the current folder
        "GPUENS_CPU": "",
        "GPUENS_THREADS": "3",
        "ASAN_OPTIONS": f"detect_leaks={leaks:d}:max_malloc_fill_size={2**30}:malloc_fill_byte={filled}",
        "LSAN_OPTIONS": "exitcode=0",
        "TSAN_OPTIONS": f"{environment['TSAN_OPTIONS']}:die_after_fork=0",
    }
    done = subprocess.run([*python, *map(str, arguments)], cwd=ROOT, env=environment, capture_output=True, text=True)
    said = done.stdout + done.stderr
    lost = leaked(done.stderr) if leaks else ""
    return done.stdout, said if done.returncode or (REPORT.search(said) and not leaks) else lost


def leaked(report: str) -> str:
    """Return the report of memory that the extension lost, or "": Python itself frees little at its end."""
    blocks = [block for block in report.split("\n\n") if "leak of" in block and "kernels/cpu" in block]
    return "\n\n".join(["detected memory leaks", *blocks]) if blocks else ""


def of_tests(mode: str) -> tuple[bool, str]:
    """Run the tests of primitives; return whether they pass, and pytest's last line."""
    unfit = ["stub", "memory_that_runs_out", "foreseen", "each_level", "signal"]
    unfit += ["emulated", "cuda", "stand-in"]  # devices: their tests would compute what they compare, and be skipped
    chosen = ["-k", " and ".join(f"not {name}" for name in unfit), *TESTS]
    pytest = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--capture=sys"]
    said, wrong = ran(mode, packaged(mode), [*pytest, *chosen])
    if wrong:
        print(wrong)
    return not wrong, said.strip().splitlines()[-1] if said.strip() else ""


def of_levels() -> tuple[bool, str]:
    """Compare all levels in tests; return whether their bits are equal, and the levels or primitives not compared."""
    if len(levels := native.usable_levels()) == 1:
        return True, "skipped: one level is compiled (make native LEVELS='v2 v3 v4')"
    chosen = ["-k", " and ".join(f"not {name}" for name in NOT_OF_LEVELS), *TESTS_OF_LEVELS]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *chosen],
            env=os.environ | {"GPUENS_ALL_LEVELS": folder, "PYTHONPATH": str(ROOT)}, cwd=ROOT, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        primitives = {name for name in dir(native.cpu) if is_primitive(name, getattr(native.cpu, name))}
        missed = primitives - set(os.listdir(folder))
    if done.returncode:
        print(done.stdout)
    said = f"{', '.join(levels)}: {len(primitives) - len(missed)} primitives, {done.stdout.strip().splitlines()[-1]}"
    return not done.returncode and not missed, said + (f", not compared: {', '.join(sorted(missed))}" * bool(missed))


def of_methods() -> tuple[bool, str]:
    """Run all methods with memory filled with either byte; return whether results are equal, and how many there are."""
    package, digests = packaged("asan"), []
    for filled in FILLED:
        said, wrong = ran("asan", package, [ROOT / "tests/same_results.py", "-"], filled)
        if wrong:
            print(wrong)
            return False, "all methods"
        digests.append(said)
    bytes_ = " and ".join(map(str, FILLED))
    return digests[0] == digests[1], f"{digests[0].count(':')} results with memory filled with {bytes_}"


def of_fuzz(worker: str, call: str) -> tuple[bool, str]:
    """Make a call of a worker of tests/, which returns faults; return whether there are none, and its last line."""
    code = f"import sys; sys.path[:0] = {SEARCHED}; import {worker} as fuzz; "
    said, wrong = ran("asan", packaged("asan"), ["-c", f"{code}sys.exit(bool(fuzz.{call}))"])
    if wrong:
        print(wrong)
    return not wrong, said.strip().splitlines()[-1] if said.strip() else ""


def of_faults(mode: str) -> tuple[bool, str]:
    """Plant the faults that a sanitizer finds; return whether all are found, and which are not."""
    faults = {name: fault for name, fault in FAULTS.items() if fault.mode == mode}
    missed = []

    def found(package: Path, calls: list[str], leaks: bool = False, compared: bool = True) -> str:
        code = CALLED.format(searched=SEARCHED, calls=calls)
        runs = [ran(mode, package, ["-c", code], filled, leaks) for filled in FILLED[: 1 + compared]]
        return "results differ" * (runs[0][0] != runs[-1][0]) + runs[0][1]

    clean = packaged(mode)
    calls = [fault.call for fault in faults.values()]
    if any(found(clean, calls, leaks, not leaks) for leaks in {False, "leak" in faults}):
        missed.append("found where there is none")
    faulty = packaged(mode, *faults.values())
    for name, fault in faults.items():
        compared = fault.found == "results differ"
        if fault.found not in found(faulty, [fault.call], name == "leak", compared):
            missed.append(f"{name} (not found)")
    return not missed, f"{len(faults)} planted faults" + (f", {', '.join(missed)}" if missed else " found")


def of_compiler(name: str) -> tuple[bool, str]:
    """Compile the primitives by another compiler; return whether there is no warning, and the compiler."""
    compiler = next(filter(None, map(shutil.which, OTHER_COMPILERS[name])), None)
    if compiler is None:
        return True, f"skipped: {OTHER_COMPILERS[name][0]} is not installed"
    place, options = BUILD / name, []
    if name == "arm64":  # the headers of Python do not differ in what primitives take from them
        options = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"]
        options += [f"-DPython_INCLUDE_DIR={sysconfig.get_path('include')}"]
    try:
        cmake(
            ["-S", ROOT / "kernels", "-B", place, "-G", "Ninja", "--log-level=WARNING",
             f"-DCMAKE_CXX_COMPILER={compiler}", f"-DPython_EXECUTABLE={sys.executable}",
             "-DCMAKE_BUILD_TYPE=Checked", "-DGPUENS_LEVELS=native", "-DCMAKE_CXX_FLAGS=-O0 -Werror", *options],
            ["--build", place, "--target", "primitives", "--", "--quiet"],
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        return False, f"{compiler} ended with {error.returncode}"
    return True, compiler


CHECKS = {
    "levels": of_levels,
    "asan": partial(of_tests, "asan"),
    "asan-methods": of_methods,
    "asan-ensembles": partial(of_fuzz, "fuzz_ensembles_worker", f"answers({FUZZED_SECONDS})"),
    "asan-files": partial(of_fuzz, "fuzz_files_worker", f"faults_of_corpus({MUTATIONS})"),
    "asan-faults": partial(of_faults, "asan"),
    "clang": partial(of_compiler, "clang"),
    "arm64": partial(of_compiler, "arm64"),
    "tsan": partial(of_tests, "tsan"),
    "tsan-faults": partial(of_faults, "tsan"),
}

if __name__ == "__main__":
    sys.exit(in_turn(CHECKS, sys.argv[1:]))
