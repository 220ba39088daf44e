"""The contents of a page beside the fit: names of the clusters, features of the objects, and embeddings of cells."""

import argparse
import csv
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuens.cli.file_consensus import LabelSource, RunResult

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".feather")  # label files whose other columns describe the objects
MOST_CODES = 30  # most different whole numbers of a column that is rather a clustering, such as the truth
MOST_BYTES = 100_000_000  # largest table that is read again for the page
EMBEDDINGS = ("X_umap", "spatial")  # entries of obsm on which the clusters are drawn


def add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--names",
        metavar="NAMES",
        help="names of the clusters for the page: '0=B cells,1=T cells', or a file of two columns, number and name",
    )


def names_of(args: argparse.Namespace) -> dict[int, str] | None:
    """Return the names of the clusters that the options give, by number; raise an error for other texts."""
    if args.names is None:
        return None
    if args.report is None:
        raise ValueError("--names is for the page; add --report FILE.html, or leave --names out.")
    is_file = os.path.isfile(args.names)
    rows = _rows_of_file(args.names) if is_file else [part.partition("=")[::2] for part in args.names.split(",")]
    names: dict[int, str] = {}
    for place, (number, name) in enumerate(rows):
        if not (number.strip().isdecimal() and name.strip()):
            if is_file and place == 0:  # the titles of the columns
                continue
            raise ValueError(
                f"--names={args.names}: {f'{number}={name}' if name else number!r} is no number with a name; write "
                "'0=B cells,1=T cells', or name a file of two columns, number and name."
            )
        names[int(number)] = name.strip()
    return names


def _rows_of_file(path: str) -> list[tuple[str, str]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        text = file.read()
    separator = next((letter for letter in "\t;," if letter in text.partition("\n")[0]), ",")
    rows = [row for row in csv.reader(text.splitlines(), delimiter=separator) if row]
    return [(row[0], row[1] if len(row) > 1 else "") for row in rows]


def describe_objects(source: "LabelSource", result: "RunResult") -> dict[str, Any]:
    """Return the features and the embeddings of the labelled objects, as arguments of `gpuens.report.render_fit`."""
    features, embeddings = _read_features(source, result), {}
    if source.labels.lower().endswith(".h5ad") and not source.more_labels:
        from gpuens.io import annotated

        for name in EMBEDDINGS:
            with suppress(ValueError):  # the file has no such entry
                embeddings[name] = annotated.read_features(source.labels, name)
    labelled = None if result.file is None else result.file.labelled
    if labelled is not None:
        features = None if features is None else features[labelled]
        embeddings = {name: places[labelled] for name, places in embeddings.items()}
    return {"features": features, "embeddings": embeddings}


def _read_features(source: "LabelSource", result: "RunResult") -> Any:
    """Return the features that the options name, or else the columns of numbers that are no clusterings."""
    if result.file is None or (source.more_labels and source.features is None):
        return None
    if source.features is not None:
        from gpuens import datasets

        return datasets.load_beside(source.labels, result.file.ids, source.features, by_position=source.by_position).X
    if result.file.form or source.reading.get("transpose"):
        return None
    table = _read_table(source, result.ensemble.n_objects)
    if table is None:
        return None
    used = {*map(str, result.ensemble.names), str(getattr(result.ids, "name", None)), str(source.weight_column)}
    used |= {*map(str, [] if source.neighbors is None else source.neighbors.columns_of(source.labels))}
    numbers = table.select_dtypes("number")
    measured = [
        name
        for name, column in numbers.items()
        if str(name) not in used and (column.dtype.kind == "f" or column.nunique() > MOST_CODES)
    ]
    return numbers[measured] if measured else None


def _read_table(source: "LabelSource", n_objects: int) -> Any:
    """Return all columns of a table of labels, or the annotations of cells; None for other files and large ones."""
    path = source.labels.lower()
    if path.endswith(".h5ad"):
        from gpuens.io import annotated

        return annotated.read_obs(source.labels)
    if not path.endswith(TABLES) or os.path.getsize(source.labels) > MOST_BYTES:
        return None
    from gpuens import io

    reading = {name: source.reading[name] for name in ("sep", "header") if name in source.reading}
    with suppress(ValueError):
        table = io.read_features(source.labels, **reading)
        return table if hasattr(table, "select_dtypes") and len(table) >= n_objects else None
    return None
