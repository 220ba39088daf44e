"""``gpuens modes``: divide the clusterings in a file into modes, groups that agree."""

import argparse
from collections.abc import Callable
from typing import Any

from gpuens.cli.arguments import add_reading_of_labels, add_selection, reading_of_labels
from gpuens.cli.files import aligned, check_beside, check_inputs, check_output, facts, print_json, print_written
from gpuens.runtime import failures
from gpuens.runtime.record import Clock


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``gpuens modes`` and its options to the command line."""
    parser = command(
        "modes",
        modes,
        "Divide clusterings into modes, groups that agree, each with a consensus of its own.",
        epilog="agreement: mean ARI of the pairs of members; VI (bits) and ARI: between the consensus of a mode and "
        "that of mode 0.",
    )
    parser.add_argument(
        "labels",
        metavar="LABELS",
        nargs="+",
        help="label files, as for `gpuens run`; or files of memberships, such as the Q files of ADMIXTURE",
    )
    add_selection(parser)
    parser.add_argument("-n", type=int, metavar="N", help="number of modes (found by a test against independent noise)")
    parser.add_argument("--method", default="voting", help="method of the consensuses, see `gpuens methods` (voting)")
    add_reading_of_labels(parser)
    parser.add_argument("--seed", type=int, default=0, help="random seed (0)")
    parser.add_argument("--device", default="auto", help="where to work: auto, cpu or cuda (auto)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the consensus of each mode, one column each, as for `gpuens run`"
    )
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def modes(args: argparse.Namespace) -> None:
    clock = Clock()
    from gpuens import io
    from gpuens.io import atomic

    check_inputs(*args.labels)
    if args.output is not None:
        check_output(args.output, *args.labels)
    with clock.phase("read"), failures.stage("read", f"reading {args.labels[0]}"):
        labels, ids, names = _read(args)
    with clock.phase("modes"), failures.stage("modes", "finding the modes"):
        from gpuens.workflows import modes as finding

        found = finding.modes(labels, args.n, method=args.method, random_state=args.seed, device=args.device)
    found.names = names
    about = {"input": args.labels[0] if len(args.labels) == 1 else args.labels, **found.to_dict()}
    if args.json:
        print_json(about)
    else:
        print(found.story)
        print(aligned(_lines(found)))
    if args.output is not None:
        import numpy as np

        with clock.phase("write"), atomic.recorded(args.output) as record:
            consensuses = np.column_stack([mode.consensus for mode in found.modes])
            names = [f"mode_{mode}" for mode in range(len(found.modes))]
            shares = {f"{name}_share": mode.membership for name, mode in zip(names, found.modes, strict=True)}
            beside = shares if found.modes[0].membership is not None else None
            io.write_labels(args.output, consensuses, names=names, ids=ids, beside=beside)
            record |= facts(args, clock, output=args.output, **about)
        if not (args.json or args.quiet):
            print_written(clock, args.output)


def _read(args: argparse.Namespace) -> tuple[Any, Any, list[Any]]:
    """Return the clusterings, labels or memberships, the names of the objects or None, and those of the clusterings."""
    from gpuens import io
    from gpuens.io.memberships import read_membership_ids

    how = reading_of_labels(args)
    if not io.holds_memberships(args.labels[0]):
        if len(args.labels) == 1:
            read = io.read_label_file(args.labels[0], **how)
        else:
            read = io.read_joined(args.labels, **{name: value for name, value in how.items() if value is not None})
        return read.ensemble, read.ids, read.ensemble.names
    _refuse_reading(how)
    if args.output is not None:
        check_beside("the share of each object in the clusters", args.output)
    clusterings, names = [], []
    for path in args.labels:
        runs = io.read_memberships(path)
        clusterings += runs
        names += [path] if len(runs) == 1 else [f"{path}:{run}" for run in range(len(runs))]
    return clusterings, read_membership_ids(args.labels[0]), names


def _refuse_reading(how: dict[str, Any]) -> None:
    """Raise an error for options that describe files of labels, if the files hold memberships."""
    for name, value in how.items():
        if value is not None and value is not False:
            raise ValueError(f"--{name.replace('_', '-')} is for label files, not for memberships; leave it out.")


def _lines(found: Any) -> list[list[str]]:
    lines = [["mode", "clusterings", "share", "clusters", "agreement", "VI", "ARI", "medoid"]]
    for i, mode in enumerate(found.modes):
        apart = [f"{found.vi[0, i]:.2f}", f"{found.ari[0, i]:.2f}"]
        sizes = [f"{len(mode.members):,}", f"{mode.share:.0%}", f"{mode.n_clusters:,}"]
        lines.append([str(i), *sizes, f"{mode.agreement:.2f}", *apart, str(found.names[mode.medoid])])
    return lines
