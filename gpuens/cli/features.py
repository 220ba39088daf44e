"""The features of a command: the file or data set that is read, by one road, and the options that prepare them."""

import argparse
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gpuens import datasets, io
from gpuens.cli.arguments import option_of, reading
from gpuens.labels.features import Features, as_csr, as_numbers
from gpuens.runtime import checks
from gpuens.runtime.defaults import FORMS, SCALES
from gpuens.runtime.device import memory_budget

# options that `reading` returns for commands which read labels or features
OF_LABELS = ("no_missing", *FORMS)
IMPUTES = ("median", "none")


def add_preparation(parser: argparse.ArgumentParser, scale: str = "none") -> None:
    """Add the options that prepare features before they are clustered; ``scale`` is the scaling if none is given."""
    parser.add_argument(
        "--scale",
        choices=SCALES,
        help="scale each feature of X: by mean and standard deviation (standard), by median and quartiles (robust), or "
        "by mean and standard deviation if one feature would decide nearly alone which objects are near (auto); "
        f"{scale} if not given",
    )
    parser.add_argument(
        "--impute", choices=IMPUTES, help="fill in missing values of X: by the median of the feature; none if not given"
    )


class ClusteringInput(NamedTuple):
    """The features or the graph from which base clusterings are made, with the names of the objects and the size."""

    X: Any  # features, or the adjacency matrix of a graph
    ids: Any  # names of the objects, or None
    size: dict[str, int]  # the entries "n_objects", and "n_features" or "n_edges"
    prepared: Mapping[str, Any] = MappingProxyType({})  # imputation and scaling, for the record

    def __str__(self) -> str:
        parts = [f"{value:,} {name[2:]}" for name, value in self.size.items()]
        if (title := getattr(self.ids, "name", None)) is not None:
            parts.append(f"names in {str(title)!r}")
        if "n_imputed" in self.prepared:
            parts.append(f"{self.prepared['n_imputed']:,} values filled in")
        if self.prepared.get("scale", "none") != "none":
            parts.append(f"scale {self.prepared['scale']}")
        return ", ".join(parts)


Prepared = tuple[Any, dict[str, Any]]  # features, and the entries of the record about their preparation


def read_source(args: argparse.Namespace, *, scale: bool = True) -> ClusteringInput:
    """Read the features or the graph from the file or data set ``args.X``; without ``scale``, leave scaling out.

    If ``args.kind`` is "leiden", the graph of an h5ad file is read, unless the user names features; and a sparse square
    matrix of another file is a graph.
    """
    from gpuens.generate.neighbor_graph import is_graph

    leiden = args.kind == "leiden"
    cells = leiden and args.X.lower().endswith(io.ANNOTATED)
    if cells and not any(value is not None for name, value in reading(args).items() if name != "id_column"):
        X, ids = io.read_graph(args.X), io.read_ids(args.X, id_column=args.id_column)
    else:
        source = read_features(args.X, args)
        X, ids = source.X, source.ids
        # features that form a sparse square matrix are made dense, so that they are not taken for a graph
        if cells and is_graph(X):
            needed = X.shape[0] ** 2 * X.dtype.itemsize
            checks.check_memory(needed, memory_budget(), f"path {args.X!r} as an array", "name other features by --key")
            X = X.toarray()
    if leiden and is_graph(X):
        X = as_csr(X, f"path {args.X!r}")
        # the count assumes a symmetric matrix, because `leiden_ensemble` refuses other matrices later
        twice = np.count_nonzero(X.data) - np.count_nonzero(X.diagonal())
        return ClusteringInput(X, ids, {"n_objects": X.shape[0], "n_edges": int(twice) // 2})
    prepared, facts = (prepare if scale else impute)(X, args)
    return ClusteringInput(prepared, ids, {"n_objects": X.shape[0], "n_features": int(X.shape[1])}, facts)


def read_features(name: str, args: argparse.Namespace, *, beside: str | None = None, ids: Any = None) -> Any:
    """Read the data set or file ``name`` with the reading options of a command, as a `gpuens.datasets.Dataset`.

    If a label file is ``beside``, with the names ``ids`` of its objects, the features are in its order, and the
    options of the command describe that file.
    """
    if beside is not None:
        return datasets.load_beside(beside, ids, name, by_position=args.by_position)
    how = {option: value for option, value in reading(args).items() if value is not None}
    for option in OF_LABELS:
        if how.pop(option, None):
            raise ValueError(f"{option_of(option)} is for files of labels, not of features; leave it out.")
    return datasets.load(name, **how)


def prepare(X: Any, args: argparse.Namespace) -> Prepared:
    """Return features, filled in and scaled as the options say, and the entries of the record about this."""
    filled, facts = impute(X, args)
    if args.scale in (None, "none"):
        return filled, facts

    scaled, scale = Features.of(filled).scaled(args.scale)
    return scaled.values, facts | {"scale": scale}


def impute(X: Any, args: argparse.Namespace) -> Prepared:
    """Return features, filled in as the option says, and the entries of the record about this."""
    if args.impute in (None, "none"):
        return X, {}
    import pandas as pd
    from sklearn.impute import SimpleImputer

    values, sparse = as_numbers(X), hasattr(X, "tocsr")
    missing = np.isnan(values.data if sparse else values)
    if not sparse and (empty := missing.all(axis=0)).any():
        column = X.columns[empty.argmax()] if hasattr(X, "columns") else int(empty.argmax())
        raise ValueError(f"--impute={args.impute}: column {column!r} has no value at all; leave it out (--exclude).")
    filled = SimpleImputer(strategy=args.impute).fit_transform(values)
    facts = {"impute": args.impute, "n_imputed": int(missing.sum())}
    return pd.DataFrame(filled, columns=X.columns) if hasattr(X, "columns") else filled, facts
