"""``gpuens predict``: label new objects by a model that `gpuens run --model` or ``estimator.save`` has written."""

import argparse
from typing import Any

import numpy as np

from gpuens import io
from gpuens.cli.arguments import add_no_missing, add_reading, add_selection, add_shared, reading
from gpuens.cli.files import check_inputs, clusters_of, facts, print_written, without_index
from gpuens.io import atomic, outputs
from gpuens.io.annotated import BESIDE
from gpuens.io.outputs import kind_like
from gpuens.io.paths import WITH_NUMBERS, without_slash
from gpuens.io.reading import names_in, read_column_file
from gpuens.runtime import device as devices
from gpuens.runtime.checks import counted
from gpuens.runtime.record import Clock
from gpuens.workflows.results import expand


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "A label row known from the fit keeps its label; any other row gets the most similar cluster, or the "
        "cluster that the method's own rule gives. Label values unknown at the fit count as missing. OUTPUT.json is a "
        "record of the run."
    )
    parser.add_argument("model", metavar="MODEL", help="npz file of `gpuens run --model` or estimator.save")
    parser.add_argument(
        "labels",
        metavar="LABELS",
        help="label file of the new objects, as for `gpuens run`; if both files name their columns, columns are "
        "matched by name and others are ignored",
    )
    add_selection(parser)
    add_reading(parser)
    add_no_missing(parser)
    parser.add_argument(
        "--drop-unlabelled",
        action="store_true",
        help="leave out objects without any label that the model knows; their label in the output is -1",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="file for labels, certainty, confidence and margin: csv, tsv, parquet or npz (beside the input: "
        "<LABELS>.predicted with the ending of a table, .csv for other text and h5ad, otherwise .npz)",
    )
    add_shared(parser, "device")


def predict(args: argparse.Namespace) -> None:
    clock = Clock()

    check_inputs(args.model, kinds=(".npz",))
    check_inputs(args.labels)
    output = _default_output(args.labels) if args.output is None else args.output
    io.packages_for(outputs.check_output(output, WITH_NUMBERS, inputs=(args.model, args.labels)))
    outputs.check_record(atomic.record_of(output))
    device = devices.resolve(args.device)
    with clock.phase("read"):
        from gpuens.methods.model import load

        model = load(args.model, device=args.device)
        columns, ids = _columns(args, model)
    with clock.phase("predict"):
        rows, labelled = _label_rows(args, model, columns)
        labels, beside = _predict(model, rows.take(labelled))

    with clock.phase("write"), atomic.recorded(output) as record:
        mask = None if labelled.all() else labelled
        evidence = {name: expand(values, mask, float("nan")) for name, values in beside.items()}
        io.write_labels(output, expand(labels, mask, -1), ids=ids, beside=evidence)
        record |= facts(
            args,
            clock,
            device=device,
            output=output,
            model=args.model,
            method=model.method,
            parameters=model.parameters,
            input=args.labels,
            n_objects=len(labelled),
            **({} if labelled.all() else {"n_unlabelled": int((~labelled).sum())}),
            **_means(beside),
        )
    if not args.quiet:
        _print_summary(args, model, labels, labelled, beside)
        print_written(clock, output, " (beside the input, as there is no -o)" if args.output is None else "")


def _columns(args: argparse.Namespace, model: Any) -> tuple[list[Any], Any]:
    """Read the label columns of the new objects in the order of the model's clusterings, and the names of the objects.

    The columns are matched by name if all columns of the file and of the model have names.
    """
    how = reading(args)
    names = names_in(args.labels, **{name: how[name] for name in ("key", "sep", "header")})
    if how["columns"] is None and all(isinstance(name, str) for name in [*names, *model.columns]):
        model.numbering.places_among(names, f"path {args.labels!r}")
        how["columns"] = model.columns
    read = read_column_file(args.labels, **how)
    return [without_index(column) for column in read.columns.values()], read.ids


def _label_rows(args: argparse.Namespace, model: Any, columns: list[Any]) -> tuple[Any, Any]:
    """Convert the columns to the label codes of the model; return the codes and the mask of objects with known labels.

    Raise an error if objects have no label that the model knows, unless the option --drop-unlabelled is given.
    """
    rows, labelled = model.encode(columns)
    if not labelled.all() and not (args.drop_unlabelled and labelled.any()):
        instead = "check the columns" if args.drop_unlabelled else "leave them out by --drop-unlabelled"
        raise ValueError(
            f"path {args.labels!r} has {(~labelled).sum():,} of {len(labelled):,} objects without a label that the "
            f"model knows, the first is object {int(labelled.argmin())}; {instead}."
        )
    return rows, labelled


def _predict(model: Any, rows: Any) -> tuple[Any, dict[str, Any]]:
    """Predict labels; return the labels and a dict of the evidence for each, which is empty without evidence."""
    if model.lacks_evidence() is not None:
        return model.predict(rows), {}

    evidence = model.evidence(rows)
    return evidence.labels, {name: getattr(evidence.objects, name) for name in BESIDE}


def _means(beside: dict[str, Any]) -> dict[str, Any]:
    means = {name: None if np.isnan(values).all() else float(np.nanmean(values)) for name, values in beside.items()}
    return {"evidence": means} if means else {}


def _print_summary(args: argparse.Namespace, model: Any, labels: Any, labelled: Any, beside: dict[str, Any]) -> None:
    sizes = np.bincount(labels, minlength=model.n_clusters)
    print(f"{args.labels}: {counted(len(labelled), 'object')}, {counted(len(model.columns), 'clustering')}")
    if not labelled.all():
        print(f"unlabelled: {counted((~labelled).sum(), 'object')}, left out and -1 in the output")
    print(f"{args.model}: {model.method}, {clusters_of(sizes.tolist(), 'new object')}")
    if beside:
        print(f"evidence: certainty {beside['certainty'].mean():.3f}")
    else:
        print(f"no certainty: {model.lacks_evidence()}")


def _default_output(labels: str) -> str:
    """Return the default output file, such as new.csv.predicted.csv for new.csv.

    An npz file stands for arrays, because it can hold the evidence.
    """
    return f"{without_slash(labels)}.predicted{kind_like(labels, numbers=True)}"
