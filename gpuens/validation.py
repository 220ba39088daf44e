"""Every check of what a caller gave, and every sentence that refuses it.

A refusal is one sentence: which argument, what was found, what to do instead. Wrong kinds of things raise
``TypeError``; right kinds with wrong values raise ``ValueError``.
"""

import errno
import fnmatch
import inspect
import numbers
import os
import stat
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpuens.checks import (
    check_integer,
    check_label_shape,
    file_kind,
    gist,
    human_bytes,
    listed,
    shown,
)

# --- files ------------------------------------------------------------------------------------------------------------


def writable_path(path: str | os.PathLike, name: str = "path") -> None:
    """Refuse paths where no file can be put; ``name`` says whose path it is."""
    path = os.fspath(path)
    try:
        there = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        there = None
    except (OSError, ValueError) as error:  # names that are too long, or that no file can have
        raise unwritable(path, error, name) from error
    folder = os.path.dirname(os.path.realpath(path))
    if there is not None and stat.S_ISDIR(there):
        raise IsADirectoryError(f"{name} {path!r} is a directory; name a file in it.")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{name} {path!r} is in a directory that does not exist; make {folder!r} first.")
    if there is not None and not stat.S_ISREG(there):
        raise ValueError(
            f"{name} {path!r} is a pipe or a device, and a file that is complete takes the place of what is there; "
            "name a file."
        )


def writable_folder(path: str | os.PathLike, name: str = "path") -> None:
    """Refuse paths where no folder can take the place of one; ``name`` says whose path it is."""
    folder_to_make(path, name)
    parent = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(parent):
        raise FileNotFoundError(
            f"{name} {os.fspath(path)!r} is in a directory that does not exist; make {parent!r} first."
        )


def folder_to_make(path: str | os.PathLike, name: str = "path") -> None:
    """Refuse paths where no folder can be made or filled; ``name`` says whose path it is."""
    path = os.fspath(path)
    try:
        os.lstat(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise unwritable(path, error, name) from error
    if not os.path.isdir(path):
        raise NotADirectoryError(f"{name} {path!r} is to be a folder, and a file is there; move it away.")
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{name} {path!r} is a folder that this user may not write to; choose another place.")


def unwritable(path: str | os.PathLike, error: OSError | ValueError, name: str = "path") -> Exception:
    """Return the refusal of a place that cannot be written to."""
    reason = getattr(error, "strerror", None) or gist(error)
    too_long = getattr(error, "errno", None) == errno.ENAMETOOLONG
    kind = (
        type(error) if isinstance(error, OSError) and not too_long else ValueError
    )  # the name's fault, or the place's
    instead = "a shorter name" if too_long else "another place"
    return kind(f"{name} {os.fspath(path)!r} cannot be written ({reason}); choose {instead}.")


def package_missing(kind: str, package: str, install: str = "gpuens[io]") -> ImportError:
    """Return the refusal of a kind of file that needs a package that is not there."""
    return ImportError(f"path: {kind} files need {package}, which is not installed: pip install '{install}'.")


def no_dask() -> ImportError:
    """Return the refusal to work in chunks without Dask."""
    return ImportError("labels in chunks need Dask, which is not installed: pip install 'gpuens[dask]'.")


def no_dask_cuda() -> ImportError:
    """Return the refusal of a cluster of GPUs without dask-cuda."""
    return ImportError(
        "scheduler 'cuda' needs dask-cuda, which is not installed: pip install dask-cuda, or take 'local'."
    )


def no_scheduler(address: str, seconds: float) -> ConnectionError:
    """Return what is raised where nobody answers."""
    return ConnectionError(
        f"no Dask scheduler answered at {address!r} within {seconds:g} s; start one there or give another address."
    )


def no_address(address: str, error: Exception) -> ValueError:
    """Return the refusal of what is no address of a scheduler."""
    return ValueError(
        f"scheduler {address!r} is none of local, cuda and threads, and no address such as tcp://host:8786 ({error})."
    )


MOST_WORKERS = 1024  # processes that one machine is asked for


def client_of_dask(client: Any) -> Any:
    """Return a client of a Dask cluster or None, or refuse what is neither."""
    does = ("compute", "persist", "scatter", "submit")
    if client is not None and not all(callable(getattr(client, what, None)) for what in does):
        raise TypeError(f"client must be a distributed.Client, not {shown(client)}.")
    return client


def scheduler_and_workers(scheduler: Any, workers: Any) -> None:
    """Refuse what names no scheduler, and numbers of workers that no machine has."""
    if scheduler is not None and not isinstance(scheduler, str):
        raise TypeError(f"scheduler must be None, 'local', 'cuda' or an address, not {shown(scheduler)}.")
    if workers is not None:
        check_integer(workers, "workers", minimum=1, maximum=MOST_WORKERS)


def chunk_options(scheduler: str | None, workers: int | None, key: str | None) -> None:
    """Refuse a number of workers where no cluster of this machine is made, and keys of files not read in chunks."""
    if scheduler is not None and key is not None:
        raise ValueError(f"--key={key} is for npz files, which are not read in chunks; leave --scheduler out.")
    if workers is not None:
        check_integer(workers, "--workers", minimum=1, maximum=MOST_WORKERS)
    if workers is not None and scheduler not in ("local", "cuda"):
        raise ValueError(
            f"--workers={workers} is for a cluster of this machine: add --scheduler local (or cuda), or leave it out."
        )


def in_chunks(labels: Any) -> None:
    """Refuse labels that are no Dask array."""
    if not hasattr(labels, "__dask_graph__"):
        raise TypeError(f"labels must be a Dask array or DataFrame, not {type(labels).__name__}; fit takes both kinds.")


def counts_taken(reduction: Any) -> None:
    """Refuse reductions that cannot be told how many objects each row stands for."""
    if len(inspect.signature(reduction.reduce).parameters) < 2:
        raise TypeError(
            f"reduction {type(reduction).__name__} has reduce(ensemble), and labels in chunks need "
            "reduce(ensemble, counts), where row g stands for counts[g] objects."
        )


def key_fits(key: Any, suffix: str, *, features: bool = False) -> None:
    """Refuse keys for files that have none."""
    if key is not None and suffix != ".npz" and not (features and suffix == ".h5ad"):
        raise ValueError(f"key={key!r} names an array in an npz file, and this is a {suffix} file; leave it out.")


def text_options(sep: Any, header: Any, is_text: bool, suffix: str) -> None:
    """Refuse what says how to read text for files that are none."""
    for name, value in (("sep", sep), ("header", header)):
        if value is not None and not is_text:
            raise ValueError(f"{name}={value!r} is about csv and tsv files, and this is a {suffix} file; leave it out.")


def label_file_shape(path: str | os.PathLike, shape: tuple[int, ...]) -> None:
    """Refuse files with more clusterings than objects."""
    check_label_shape(shape, columns_are_clusterings=True)
    n_objects, n_clusterings = shape
    if n_clusterings > n_objects:
        raise ValueError(
            f"labels in {os.fspath(path)!r} are {n_clusterings} clusterings of {n_objects} object(s), as if "
            "transposed: rows are objects and columns are base clusterings, so write them the other way round (or pass "
            "a list of columns in Python, if there really are so few objects)."
        )


def one_id_each(ids: Any, n_objects: int) -> None:
    """Refuse ids that are not one for each object."""
    if ids is not None and len(ids) != n_objects:
        raise ValueError(f"ids must be one for each object, but {len(ids)} were given for {n_objects}.")


def npz_columns(key: str | None, stored: list[str], shapes: list[tuple[int, ...]]) -> None:
    """Refuse npz files where it is not clear which array is meant; ``shapes`` are of arrays that may be columns."""
    if key is not None:
        raise ValueError(f"key={key!r} is not in this npz file; it has {listed(stored)}.")
    if not stored:
        raise ValueError("path names an npz file without any array in it; write the file anew.")
    if not shapes or len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise ValueError(f"key is needed to choose an array of this npz file; it has {listed(stored)}.")


def chosen_columns(columns: Any, names: list, argument: str = "columns") -> list[int]:
    """Return the positions of columns given by name, number or a pattern such as 'leiden_*', or refuse them."""
    chosen: list[int] = []
    single = isinstance(columns, (str, numbers.Integral)) or not isinstance(columns, Iterable)
    for column in [columns] if single else columns:
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (str, numbers.Integral)):
            raise TypeError(f"{argument} must be names or numbers of columns, not {shown(column)}.")
        if isinstance(column, str) and names.count(column) > 1:
            raise ValueError(f"{argument}: {column!r} is the name of several columns; give their numbers, from 0 on.")
        if isinstance(column, str) and column in names:
            chosen.append(names.index(column))
            continue
        if isinstance(column, str) and set(column) & set("*?["):
            fitting = [m for m, name in enumerate(names) if fnmatch.fnmatchcase(str(name), column)]
            chosen += [m for m in fitting if m not in chosen]
            if fitting:
                continue
        position = int(column) if not isinstance(column, str) or column.isdecimal() else -1
        if not 0 <= position < len(names):
            there = f"0 … {len(names) - 1}" if all(isinstance(name, int) for name in names) else listed(names)
            raise ValueError(f"{argument}: there is no column {column!r}; there are {there}.")
        chosen.append(position)
    if not chosen:
        raise ValueError(f"{argument} is empty; name at least one column, or leave it out to read all.")
    return chosen


def some_like_labels(there_are: bool, names: list) -> None:
    """Refuse annotations among which nothing looks like labels."""
    if not there_are:
        raise ValueError(f"columns is needed: no column holds categories or integers; there are {listed(names)}.")


def writable_labels(labels: np.ndarray) -> None:
    """Refuse what is no labelling (n_objects,) and no label matrix (n_objects, n_clusterings)."""
    if labels.ndim not in (1, 2) or 0 in labels.shape:
        raise ValueError(f"labels must be (n_objects,) or (n_objects, n_clusterings), but have shape {labels.shape}.")
    if labels.dtype.kind not in "iubU":
        raise TypeError(f"labels must be integers or strings to be written, but have dtype {labels.dtype}.")


# --- the command line and pictures ------------------------------------------------------------------------------------


def output_path(path: str, kinds: Iterable[str], *, inputs: Iterable[str | os.PathLike] = ()) -> str:
    """Refuse outputs of an unknown kind, in places that cannot be written to, or on top of what is read."""
    kind = file_kind(path, kinds)
    (writable_folder if kind == ".zarr" else writable_path)(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"path {path!r} is in a directory that this user may not write to; choose another place.")
    if os.path.exists(target) and not _replaceable(target, folder):
        raise PermissionError(f"path {path!r} is another user's, who alone may replace it there; choose another name.")
    for source in inputs:
        if os.path.realpath(source) == target:
            raise ValueError(f"output {path!r} is the input itself; choose another name.")
    return kind


def _replaceable(path: str, folder: str) -> bool:
    """Return whether this user may replace a file, which in folders such as /tmp is for its owner alone."""
    where = os.stat(folder)
    if not where.st_mode & stat.S_ISVTX or not hasattr(os, "geteuid"):
        return True
    return os.geteuid() in (0, where.st_uid, os.stat(path).st_uid)


def features_option(features: str | None, scheduler: str | None, method: str, *, takes: bool) -> None:
    """Refuse features for a method that takes none, and to leave them out or work in chunks where they are needed."""
    if features is not None and not takes:
        raise ValueError(f"--features is no option of method {method!r}, which goes by the labels alone; leave it out.")
    if takes and features is None:
        raise ValueError(
            f"--features is needed: method {method!r} finds the neighbours of objects in them; name a file."
        )
    if takes and scheduler is not None:
        raise ValueError(
            f"--scheduler={scheduler} is for labels in chunks, but method {method!r} finds neighbours among all "
            "objects; leave it out."
        )


def n_clusters_or_rule(n_clusters: int | None, method: str, *, has_rule: bool) -> None:
    """Refuse to leave the number of clusters to a method that has no rule to choose it."""
    if n_clusters is not None:
        check_integer(n_clusters, "n_clusters", minimum=1)
    elif not has_rule:
        raise ValueError(f"n_clusters is needed: method {method!r} has no rule to choose it; say how many with -k.")


def one_column(n_columns: int, path: str | os.PathLike) -> None:
    """Refuse files with several clusterings where one labelling is to be compared with."""
    if n_columns != 1:
        raise ValueError(f"path {os.fspath(path)!r} has {n_columns} columns where one is needed; choose one of them.")


def classes_known(classes: Any, name: str) -> Any:
    """Return the classes of a data set, or refuse a data set that has none to compare results with."""
    if classes is None:
        raise ValueError(f"data set {name!r} has no classes to compare results with; add them as y.")
    return classes


def linkage_method(estimator: Any) -> Any:
    """Return the dendrogram of a fitted linkage method, or refuse what is none."""
    if not hasattr(estimator, "dendrogram_"):
        kind = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(f"estimator must be a fitted linkage method, such as LWEA(…).fit(labels), not {kind}.")
    return estimator.dendrogram_


def grown_tree(tree: Any) -> tuple[Any, float | None, float]:
    """Return the CA-tree of a reduction or a fitted estimator and the τ and γ that it was cut at, or refuse others."""
    if hasattr(tree, "radii"):
        return tree, None, 1.0
    cut = getattr(getattr(tree, "reduction_", tree), "cut_tree", None)
    if cut is None:
        kind = tree.__name__ if isinstance(tree, type) else type(tree).__name__
        raise TypeError(
            "tree must be what CATree().grow(labels) returns, a reduction by CATree(…) or an estimator fitted with "
            f"reduction=CATree(…) to labels in one piece, not {kind}."
        )
    return cut


def soft_correspondences(estimator: Any) -> tuple[list, list, list]:
    """Return the correspondence matrices of a fitted method, its clusters' labels and its clusterings' names."""
    if not hasattr(estimator, "correspondence_"):
        kind = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(f"estimator must have soft correspondences, as SCEC(…).fit(labels) has, not be {kind}.")
    ensemble = estimator.reduction_.ensemble
    return estimator.correspondence_, ensemble.categories, ensemble.names


def one_of_clusterings(clustering: Any, names: list) -> int:
    """Return the position of a base clustering given by its name or its position, or refuse it."""
    for place, name in enumerate(names):
        if type(name) is type(clustering) and name == clustering:
            return place
    if isinstance(clustering, str):
        raise ValueError(
            f"clustering {shown(clustering)} is none of {', '.join(map(str, names[:5]))}{' …' * (len(names) > 5)}."
        )
    return check_integer(clustering, "clustering", minimum=0, maximum=len(names) - 1)


def axes(ax: Any) -> Any:
    """Return matplotlib's Axes, or refuse what is none."""
    if not (hasattr(ax, "imshow") and hasattr(ax, "figure")):
        raise TypeError(f"ax must be one of matplotlib's Axes, such as Figure().subplots() returns, not {shown(ax)}.")
    return ax


def axes_for(ax: Any, n_pictures: int) -> None:
    """Refuse to draw several pictures into one Axes."""
    if ax is not None and n_pictures > 1:
        raise ValueError(
            f"ax is one place for {n_pictures} pictures; say which clustering to draw there, or leave ax out."
        )


def pictures_to_report(method: str, has_pictures: bool, drawable: bool) -> None:
    """Refuse a report of a method that has no pictures, or where nothing can draw them."""
    if not has_pictures:
        raise ValueError(
            f"--report draws dendrograms and correspondences, and method {method!r} has neither; leave --report out."
        )
    if not drawable:
        raise no_matplotlib()


def no_matplotlib() -> ImportError:
    """Return the refusal of pictures where nothing can draw them."""
    return ImportError("pictures need matplotlib, which is not installed: pip install 'gpuens[plot]'.")


# --- single values ----------------------------------------------------------------------------------------------------


def groups_too_many(n_rows: int, needed: int) -> MemoryError:
    """Return what is raised for core groups of all chunks that do not fit one process and have to."""
    return MemoryError(
        f"the core groups of all chunks, up to {n_rows}, need {human_bytes(needed)}, which do not fit one process; "
        "work on a sample, reduction=Sample(…), or on fewer clusterings (GPUENS_MEMORY=… sets another limit)."
    )


def rows_elsewhere() -> TypeError:
    """Return the refusal to look up what belongs to rows that stay in pieces."""
    return TypeError("the rows of this reduction stay in pieces, without numbers of their own; use of_rows(function).")
