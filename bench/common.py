"""Shared code of the benchmarks: measuring in a separate process, describing the machine, Markdown and JSON.

Every figure comes from a child process that does nothing else, so that its first call is a user's first call and its
peak memory is its own: `in_child` runs one function of a module, `serve` is the other end.
"""

import datetime
import importlib
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
REAL = (  # real data sets with features and classes
    "iris", "wine", "glass", "ecoli", "ionosphere", "breast_wdbc", "breast_wisconsin", "vowel", "yeast", "digits",
    "seg210", "semeion", "mf", "is", "vs", "spf", "pendig_test",
)  # fmt: skip
KEPT_OUT = frozenset({  # sets that choose no default, because defaults are judged by them afterwards
    "ecoli", "glass", "ionosphere", "breast_wdbc", "wine", "yeast", "is", "iris", "isolet", "lr", "usps", "mnist5000",
    "digits", "fbis", "hitech", "mm", "ng20_w1000", "reuters_r8", "tr12", "tr31", "tr45", "wap",
    "lwec_IS", "lwec_LR", "lwec_ODR",
})  # fmt: skip

Record = dict[str, Any]

# --- a process for each measurement -----------------------------------------------------------------------------------


def in_child(
    task: Callable[..., Record],
    *,
    limit: float | None = None,
    environment: Any = None,
    python: str | Path = sys.executable,
    **arguments: Any,
) -> Record:
    """Run ``task(**arguments)`` in a new process and return its result. Another ``python`` can have other packages.

    ``process_seconds`` is added: from the start of the process to its end, imports included. A task that fails, is
    killed or takes more than ``limit`` seconds returns {"failed": why}.
    """
    module = task.__module__
    if module == "__main__":
        module = Path(sys.modules[module].__file__ or "").stem
    request = json.dumps([module, task.__name__, arguments, sys.path], default=os.fspath)
    start = time.perf_counter()
    try:
        process = subprocess.run(
            [python, __file__, request],
            capture_output=True,
            text=True,
            timeout=limit,
            env={**os.environ, **(environment or {})},
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {limit:.0f} s"}
    if process.returncode < 0:
        return {"failed": f"killed by signal {-process.returncode}"}
    if process.returncode > 0:
        return {"failed": (process.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(process.stdout.splitlines()[-1]) | {"process_seconds": time.perf_counter() - start}


def forked(task: Callable[..., Record], *given: Any, limit: float) -> Record:
    """Return the result of a task in a fork of this process, or the reason for its failure."""
    fork = multiprocessing.get_context("fork")
    ours, child_end = fork.Pipe(duplex=False)
    child = fork.Process(target=lambda: child_end.send(task(*given)))
    child.start()
    child_end.close()
    try:
        return ours.recv() if ours.poll(limit) else {"failed": f"more than {limit:.0f} s"}
    except EOFError:
        child.join()
        return {"failed": f"its process ended with {child.exitcode}"}
    finally:
        child.kill()
        child.join()


def serve(request: str) -> None:
    """Carry out the task that `in_child` gave this process."""
    module, task, arguments, path = json.loads(request)
    sys.path += [folder for folder in path if folder not in sys.path]
    print(json.dumps(getattr(importlib.import_module(module), task)(**arguments)))


def measured(call: Callable[[], Any], *, later: int = 3, allowance: float = 25.0) -> tuple[Any, Record]:
    """Return the result of the first ``call``, the seconds of the first call, and the median seconds of later calls.

    There are ``later`` later calls, or as many as the ``allowance`` of seconds has room for. The peak memory is that of
    the process after the first call.
    """
    result, first, first_cpu = timed(call)
    record = {"first": first, "first_cpu": first_cpu, "peak": peak_memory(), "load": load()}
    again: list[tuple[float, float]] = []
    while len(again) < later and sum(seconds for seconds, _ in again) + first <= allowance:
        again.append(timed(call)[1:])
    if again:
        seconds, cpu = zip(*again, strict=True)
        record |= {"later": statistics.median(seconds), "later_cpu": statistics.median(cpu), "later_calls": len(again)}
    return result, record


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of ``call``, its seconds, and the CPU seconds of all threads and of its child processes."""
    from gpuens.runtime.record import processor_seconds

    start, start_cpu = time.perf_counter(), processor_seconds()
    result = call()
    return result, time.perf_counter() - start, processor_seconds() - start_cpu


def peak_memory() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    from gpuens.runtime import record

    return record.peak_memory() or 0


# --- where and with what ----------------------------------------------------------------------------------------------


def about(packages: Iterable[str]) -> Record:
    """Return the facts that all measurements depend on: the machine, the versions, and the library's last commit."""
    from gpuens.runtime import record

    versions = {"python": platform.python_version()} | record.versions(packages)
    return {"machine": record.machine(), "versions": versions, "commit": commit()}


def checkouts(before: Path | None) -> dict[str, Path]:
    """Return the folders of the versions to measure: this checkout, and an older one if there is one."""
    return {"now": HERE.parent} | ({"before": before.resolve()} if before else {})


def versions_of(rows: Record) -> list[str]:
    """Return the versions that all rows have measured, the older one first."""
    return [version for version in ("before", "now") if all(version in row for row in rows.values())]


def commit(checkout: Path = HERE.parent) -> str | None:
    """Return the last commit that changed the library, followed by "+" if files have changed since this commit."""

    def git(*arguments: str) -> str:
        process = subprocess.run(["git", "-C", checkout, *arguments], capture_output=True, text=True, check=True)
        return process.stdout.strip()

    library = ("gpuens", "kernels")
    try:
        changed = git("status", "--porcelain", "--", *library)
        return git("log", "-1", "--format=%h", "--", *library) + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def load() -> float | None:
    """Return the load average of the last minute. If it is far above 1 per thread, measured seconds mean little."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


# --- the record -------------------------------------------------------------------------------------------------------


def begin(path: Path | None, setting: Record) -> Record:
    """Return the record of ``path`` if machine, versions and commit are still the same, else a new record."""
    if path is not None and path.exists():
        record = json.loads(path.read_text())
        if {key: record.get(key) for key in setting} == setting:
            return record
    return dict(setting)


def save(path: Path | None, record: Record, markdown: str) -> None:
    """Write JSON and Markdown to temporary files and then rename them, so that files with final names are complete."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for target, text in ((path, json_text(rounded(record))), (path.with_suffix(".md"), markdown)):
        beside = target.with_name(target.name + ".partial")
        beside.write_text(text.rstrip("\n") + "\n")
        beside.replace(target)


def json_text(value: Any, levels: int = 4, indent: str = "") -> str:
    """Return JSON with one line for each row of a part: dicts of dicts are split, ``levels`` deep."""
    if levels == 0 or not isinstance(value, dict) or not any(isinstance(item, dict) for item in value.values()):
        return json.dumps(value)
    lines = [f"{indent} {json.dumps(key)}: {json_text(item, levels - 1, indent + ' ')}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


# --- Markdown ---------------------------------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. The first two columns are words, and all other columns are numbers."""
    lines = [header, ["---"] * 2 + ["--:"] * (len(header) - 2), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine_line(record: Record) -> str:
    host = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items() if version)
    return (
        f"{host['processor']}, {host['threads']} thread(s), {size(host['memory'])} of memory, {host['system']}; "
        f"{versions}; library at commit {record['commit']}."
    )


def seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def size(value: float | None) -> str:
    from gpuens.runtime.checks import human_bytes

    return "–" if value is None else human_bytes(value)


def number(value: float | None, places: int = 3) -> str:
    return "–" if value is None else f"{value:.{places}f}"


def held(ok: bool | None) -> str:
    return "–" if ok is None else "met" if ok else "**missed**"


if __name__ == "__main__":
    serve(sys.argv[1])
