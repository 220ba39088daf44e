"""The record of a run as Markdown."""

import common
from gpu_end_to_end import SPENT
from gpu_launches import COUNTS
from gpu_outcomes import holds, problem

from gpuens import kernels


def markdown(record: common.Record) -> str:
    device, parts = record.get("device", {}), record["parts"]
    lines = [f"# {device.get('name', 'GPU')}\n"]
    if "cupy" in device:
        lines.append(
            f"{device['name']} ({common.size(device['memory'])}, {device['multiprocessors']} multiprocessors, compute "
            f"capability {device['compute_capability']}, {common.size(device['l2'])} of L2), driver "
            f"{device['driver'] or 'unknown'} (CUDA {device['driver_cuda']}), CUDA runtime {device['cuda']}, CuPy "
            f"{device['cupy']}."
        )
    if "machine" in record:
        lines.append(f"{common.machine_line(record)}{' A quick run on tiny inputs.' if record['quick'] else ''}")
    shown = {
        "parity": ("Parity with the CPU", parity_markdown),
        "ceilings": ("Ceilings", ceilings_markdown),
        "kernels": ("Kernels", kernels_markdown),
        "end-to-end": ("End to end", end_to_end_markdown),
    }
    for part, (title, text) in shown.items():
        lines.append(f"\n## {title}\n")
        lines.append(text(parts) if parts.get(part) else "Not measured: this part was not asked for.")
    return "\n".join(lines)


def parity_markdown(parts: common.Record) -> str:
    rows = parts["parity"]
    checked = [row for row in rows if "held" in row]
    lost = [row for row in checked if not row["held"]] + [row for row in rows if "held" not in row]
    verdict = "all of them held" if all(map(holds, rows)) else "**not all of them held**"
    if any("skipped" in row for row in rows):
        verdict += ", and some were left out"
    columns = list(dict.fromkeys((row["size"], row["dtype"]) for row in checked))
    header = ["", "of", *(f"{size:,} {dtype}" for size, dtype in columns)]
    table = []
    by_kernel = {kernel: [row for row in checked if kernel in row["kernels"]] for kernel in kernels.functions()}
    by_name = {name: [row for row in checked if row["what"] == name] for name in dict.fromkeys(r["what"] for r in rows)}
    for kind, found in (("kernel", by_kernel), ("results of", by_name)):
        for name, own in found.items():
            cells = [[row for row in own if (row["size"], row["dtype"]) == column] for column in columns]
            table.append([f"`{name}`" if kind == "kernel" else name, kind, *map(cell, cells)])
    lines = [
        f"{sum(row['compared'] for row in checked):,} comparisons with the CPU in {len(checked):,} cases: "
        f"{verdict}. Columns are objects and the dtype of their codes; a cell counts the cases (weights of one and "
        "real ones, and what launches the kernel). Results are compared to the bit, but for sums of real weights over "
        "objects (rounding) and for what ends in k-means of many objects (one label in 10,000 may differ).\n",
        common.table(header, table),
    ]
    lines += [
        f"- {row['what']}" + (f", {row['size']:,} {row['dtype']}, weights {row['weights']}" if "size" in row else "")
        + f": {row.get('why') or problem(row)}"
        for row in lost
    ]  # fmt: skip
    return "\n".join(lines)


def cell(rows: list[common.Record]) -> str:
    if not rows:
        return "–"
    lost = sum(not row["held"] for row in rows)
    return f"**{lost} of {len(rows)} lost**" if lost else f"{len(rows)} held"


def ceilings_markdown(parts: common.Record) -> str:
    words = {
        "copy_rate": ("copy of an array on the device, read and written", "B/s"),
        "compare_rate": ("labels compared in registers, and the matches counted", "comparisons/s"),
    }
    rows = []
    for row in parts["ceilings"]:
        what, unit = words[row["what"]]
        rows.append([what, problem(row) or unit, *(["–"] * 2 if problem(row) else [scaled(row["rate"]), ms(row)])])
    return common.table(["ceiling", "unit", "rate", "ms a call"], rows)


def kernels_markdown(parts: common.Record) -> str:
    rates = {row["what"]: row.get("rate") for row in parts.get("ceilings", [])}
    copy, compare = rates.get("copy_rate"), rates.get("compare_rate")
    header = ["kernel", "in", "rows", "launches", "ms", "bytes", "operations", "ceiling", "share"]
    header += ["longest launch, ms", "its share"]
    table = []
    for row in parts["kernels"]:
        if problem(row):
            table.append(["–", row["case"], problem(row), *["–"] * (len(header) - 3)])
            continue
        which, share = share_of(row, copy, compare)
        cells = [f"`{row['kernel']}`", row["case"], row["shape"], f"{row['launches']:,}", ms(row)]
        cells += [scaled(row["bytes"]), scaled(row["operations"]), which, share]
        table.append([*cells, ms(row["longest"]), share_of(row["longest"], copy, compare)[1]])
    counted = [[f"`{name}`", count.moved, count.done] for name, count in COUNTS.items()]
    return "\n".join(
        [
            "Milliseconds by CUDA events, all launches of a call together, the median of several calls after one that "
            "warmed up. Bytes are those of every array once, whatever caches do; the ceiling is the one that would "
            "take longer, bytes at the rate of the copy or operations at that of the comparisons, and the share is "
            "that time over the measured one. Linkages run as they do in use; before all other launches the L2 cache "
            "is overwritten.\n",
            common.table(header, table),
            "\nWhat is counted:\n",
            common.table(["kernel", "bytes of", "operations"], counted),
        ]
    )


def share_of(row: common.Record, copy: float | None, compare: float | None) -> tuple[str, str]:
    if not copy or not compare or not row["seconds"]:
        return "–", "–"
    by_bytes, by_operations = row["bytes"] / copy, row["operations"] / compare
    return ("bytes" if by_bytes >= by_operations else "compare"), f"{max(by_bytes, by_operations) / row['seconds']:.1%}"


def end_to_end_markdown(parts: common.Record) -> str:
    header = ["ensemble", "call", "groups", "cold", "first", "later", "device peak", "host peak", "CPU, first", "later"]
    header += ["faster by", "comparisons / G²M", "searches", "rounds"]
    table, went, estimates = [], [], []
    for row in parts["end-to-end"]:
        found, cpu = row["device"], row.get("cpu", {})
        shape = row["objects"]
        name = f"{row['ensemble']}" if shape is None else f"{row['ensemble']} ({shape[0]:,} × {shape[1]})"
        if "estimate" in row:
            measured = stage_seconds(found, row["stage"])
            words = "not measured" if measured is None else f"{measured:.4g} s"
            estimates.append([name, row["call"], row["stage"], f"{row['estimate']:g} s", words])
        if problem(found):
            table.append([name, row["call"], problem(found), *["–"] * (len(header) - 3)])
            continue
        cells = [name, row["call"], f"{found['groups']:,}" if found.get("groups") else "–"]
        cells += [short(found.get(key)) for key in ("cold", "first", "later")]
        cells += [common.size(found.get("device_peak")), common.size(found["peak"])]
        cells += [problem(cpu) or short(cpu.get("first")), short(cpu.get("later"))]
        times = settled(cpu) / settled(found) if cpu and not problem(cpu) else None
        cells.append("–" if times is None else f"{times:.1f}×")
        share = found["comparisons"] / (found["groups"] ** 2 * shape[1]) if "comparisons" in found else None
        cells += [common.number(share), *(f"{found[key]:,}" if key in found else "–" for key in ("searches", "rounds"))]
        table.append(cells)
        if spent := found.get("stages"):
            went.append([name, row["call"], *(f"{1000 * spent[s]:.3g}" if s in spent else "–" for s in SPENT)])
    lines = [
        "Seconds from labels where the device works to labels there, the device's work included. Cold is a first call "
        "in a fresh process with nothing compiled yet (CuPy's and Numba's caches empty), first one with compiled code "
        "on disk, later the median of up to three more in the same process. Device peak is what CuPy's pool has taken, "
        "host peak the whole process. The CPU works on the same labels, and is given up after a minute; faster by "
        "compares later calls (first ones where there are no later).\n",
        common.table(header, table),
        "\nWhere the time goes: milliseconds of a later call that waits for the device after each stage (nearest "
        "lists, searches and rounds are the linkage; embedding and k-means the transfer cut).\n",
        common.table(["ensemble", "call", *SPENT], went),
    ]
    if estimates:
        lines.append("\nWhat counts of operations let expect of an H100, before there was a measurement:\n")
        lines.append(common.table(["ensemble", "call", "stage", "expected", "measured"], estimates))
    return "\n".join(lines)


def stage_seconds(found: common.Record, stage: str) -> float | None:
    return found.get("later") if stage == "all" else found.get("stages", {}).get(stage)


def settled(found: common.Record) -> float:
    return found.get("later") or found["first"]


def short(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}"


def ms(row: common.Record) -> str:
    return f"{1000 * row['seconds']:.3g}"


def scaled(value: float) -> str:
    for unit, word in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {word}"
    return f"{value:.3g}"
