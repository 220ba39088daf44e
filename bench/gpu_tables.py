"""The tables of the page about GPUs, computed from the record."""

import json
from collections.abc import Iterator

import common
import instructions
import report
from gpu_end_to_end import JOURNEYS

from gpuens.runtime import kernels

CEILINGS = {
    "copy_rate": ("copy of an array on the device, read and written", "B/s"),
    "compare_rate": ("labels compared in registers, and the matches counted", "comparisons/s"),
}


def short(seconds: float) -> str:
    return f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}"


def scaled(value: float) -> str:
    for unit, word in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {word}"
    return f"{value:.3g}"


report.FORMATS |= {"short": short, "scaled": scaled, "ms": lambda seconds: f"{1000 * seconds:.3g}"}


def flat(rows: common.Record) -> list[common.Record]:
    """Return the rows of all cases. A case that was skipped or has failed gives a single row."""
    return [line for key, row in rows.items() for line in row.get("rows", [{"what": key, "case": key, **row}])]


def page_values(record: common.Record) -> common.Record:
    if not record["parts"]:
        return {"device": none_yet()}
    device = next(iter(record["parts"].values()))["setting"]["device"]
    if "cupy" not in device:
        return {"device": device["name"]}
    return {
        "device": f"{device['name']} ({common.size(device['memory'])}, {device['multiprocessors']} multiprocessors, "
        f"compute capability {device['compute_capability']}, {common.size(device['l2'])} of L2), driver "
        f"{device['driver'] or 'unknown'} (CUDA {device['driver_cuda']}), CUDA runtime {device['cuda']}, CuPy "
        f"{device['cupy']}."
    }


# --- before there is a GPU --------------------------------------------------------------------------------------------

SPEC = report.Page("gpu", report).spec
WAYS = {
    "tiles": "labels compared with tiles of 64 rows",
    "rows": "labels compared with rows",
}


def none_yet() -> str:
    """Return the page before any GPU has been measured."""
    counts = json.loads((common.RESULTS / "instructions.json").read_text())
    lines = [(f"`{name}`", operation, *bounds) for name, operation, bounds in bounds_of(counts)]
    heads = [title for gpu in instructions.GPUS for title in (f"{gpu} at most", "bound by")]
    expected = [
        [journey.title, call, stage, f"{short(seconds)} s"]
        for journey in JOURNEYS for call, stage, seconds in journey.estimates
    ]  # fmt: skip
    return SPEC["none_yet"].format(
        nvrtc=instructions.page_values(counts)["nvrtc"],
        commit=counts["parts"]["kernels"]["commit"],
        bounds=common.table(["kernel", "operation", *heads], lines),
        expected=common.table(["ensemble", "call", "stage", "expected"], expected),
    )


def bounds_of(counts: common.Record) -> Iterator[tuple[str, str, list[str]]]:
    """Yield a kernel, its operation, and for each GPU the bound and its cause.

    ``counted`` comes from instructions.json.
    """
    weights = {name: counts["parts"][name]["rows"] for name in instructions.WEIGHTS}
    for way, operation in WAYS.items():
        for name, rows in weights.items():
            per_gpu = {gpu: rows[properties.architecture]["now"][way] for gpu, properties in instructions.GPUS.items()}
            yield (
                "nearest_rows",
                f"{operation}, {'real weights' if name == 'real' else 'weights of one'}",
                cells(per_gpu),
            )
    for kernel, rows in counts["parts"]["kernels"]["rows"].items():
        per_gpu = {gpu: rows[properties.architecture] for gpu, properties in instructions.GPUS.items()}
        yield kernel, SPEC["counted"][kernel][1], cells(per_gpu)


def cells(per_gpu: dict[str, common.Record]) -> list[str]:
    texts = []
    for name, counts in per_gpu.items():
        gpu = instructions.GPUS[name]
        texts += [f"{instructions.bound(gpu, counts):.0f}", instructions.binds(gpu, counts)]
    return texts


# --- parity -----------------------------------------------------------------------------------------------------------


def columns(rows: common.Record) -> list[tuple[int, str]]:
    return list(dict.fromkeys((row["size"], row["dtype"]) for row in flat(rows) if "held" in row))


def parity_values(rows: common.Record, record: common.Record) -> common.Record:
    checks = flat(record["parts"]["parity"]["rows"])
    checked = [row for row in checks if "held" in row]
    lost = [row for row in checks if not row.get("held")]
    verdict = "all of them held"
    if any("skipped" not in row for row in lost):
        verdict = "**not all of them held**"
    if any("skipped" in row for row in lost):
        verdict += ", and some were left out"
    lines = [
        f"- {row['what']}" + (f", {row['size']:,} {row['dtype']}, weights {row['weights']}" if "size" in row else "")
        + f": {row.get('why') or row.get('skipped') or row.get('failed')}"
        for row in lost
    ]  # fmt: skip
    compared = sum(row["compared"] for row in checked)
    sizes = {f"{size:,} {dtype}": f"{size:,} {dtype}" for size, dtype in columns(rows)}
    checks = {"compared": compared, "cases": len(checked), "verdict": verdict, "lost": "\n".join(lines)}
    return checks | {"lists": {"size": sizes}}


def parity_lines(rows: common.Record) -> Iterator[common.Record]:
    checked = [row for row in flat(rows) if "held" in row]
    names = {
        f"`{kernel}`": ("kernel", [r for r in checked if kernel in r["kernels"]]) for kernel in kernels.functions()
    }
    for primitive in dict.fromkeys(row["what"] for row in checked):
        names[primitive] = "results of", [row for row in checked if row["what"] == primitive]
    for name, (kind, rows_of_name) in names.items():
        cells = {}
        for size, dtype in columns(rows):
            equal = [row["held"] for row in rows_of_name if (row["size"], row["dtype"]) == (size, dtype)]
            lost = f"**{len(equal) - sum(equal)} of {len(equal)} lost**"
            cells[f"{size:,} {dtype}"] = (f"{len(equal)} held" if all(equal) else lost) if equal else None
        yield {"name": name, "kind": kind, "cells": cells}


# --- kernels ----------------------------------------------------------------------------------------------------------


def ceilings_lines(rows: common.Record) -> Iterator[common.Record]:
    for key, row in rows.items():
        meaning, unit = CEILINGS[key]
        yield {"what": meaning, "unit": row.get("skipped", unit), **row}


def kernels_values(rows: common.Record, record: common.Record) -> common.Record:
    """Return the lines of kernels, with shares of the lowest ceiling: for all launches and for the longest launch."""
    ceilings = record["parts"].get("ceilings", {"rows": {}})["rows"]
    copy, compare = (ceilings.get(ceiling, {}).get("rate") for ceiling in CEILINGS)
    lines = []
    for row in flat(rows):
        line = {**row, "name": f"`{row['kernel']}`" if "kernel" in row else None}
        if "skipped" in row:
            line["failed"] = row["skipped"]
        for of, share in ((row, "share"), (row.get("longest", {}), "its_share")):
            if copy and compare and of.get("seconds"):
                bounds = {"bytes": of["bytes"] / copy}
                # the bound by instructions is more exact than the measured rate of another loop
                if of.get("by_instructions"):
                    bounds["instructions"] = of["by_instructions"]
                else:
                    bounds["compare"] = of["operations"] / compare
                line["ceiling"] = max(bounds, key=bounds.__getitem__)
                line[share] = bounds[line["ceiling"]] / of["seconds"]
                if of is row:
                    line["at_least"] = bounds[line["ceiling"]]
        lines.append(line)
    return {"kernels_lines": lines}


# --- end to end -------------------------------------------------------------------------------------------------------


def settled(row: common.Record) -> float:
    return row.get("later") or row["first"]


def end_to_end_lines(rows: common.Record) -> Iterator[common.Record]:
    for key, row in rows.items():
        if "call" not in row:
            continue
        result, shape, cpu = row["device"], row["objects"], rows.get(f"{key}, CPU", {})
        line = {**row, **result, "groups": result.get("groups")}
        line["title"] = row["ensemble"] + (f" ({shape[0]:,} × {shape[1]})" if shape else "")
        if "skipped" in result:
            line["failed"] = result["skipped"]
        if cpu:
            line["cpu"] = cpu.get("skipped") or cpu.get("failed") or short(cpu["first"])
            line["cpu_later"] = cpu.get("later")
        if "heights" in cpu and "heights" in result:
            line["same"] = cpu["heights"] == result["heights"]
        if "first" in cpu and "first" in result:
            line["times"] = settled(cpu) / settled(result)
        if "comparisons" in result:
            line["share"] = result["comparisons"] / (result["groups"] ** 2 * shape[1])
        yield line


def stages_lines(rows: common.Record) -> Iterator[common.Record]:
    return (line for line in end_to_end_lines(rows) if "stages" in line)


def estimates_lines(rows: common.Record) -> Iterator[common.Record]:
    for line in end_to_end_lines(rows):
        if "estimate" in line:
            stage = line["stage"]
            measured = line.get("later") if stage == "all" else line.get("stages", {}).get(stage)
            yield {**line, "measured": measured}
