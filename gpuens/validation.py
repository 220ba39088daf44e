"""Every check of what a caller gave, and every sentence that refuses it.

A refusal is one sentence: which argument, what was found, what to do instead. Wrong kinds of things raise
``TypeError``; right kinds with wrong values raise ``ValueError``.
"""

import errno
import fnmatch
import inspect
import math
import numbers
import os
import stat
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

MISSING = -1  # how callers and results write a missing label


# --- label matrices ---------------------------------------------------------------------------------------------------


def label_matrix_shape(shape: tuple[int, ...], *, columns_are_clusterings: bool) -> None:
    """Refuse label matrices that are not (n_objects, n_clusterings) with at least one of each.

    ``columns_are_clusterings`` is True where the caller said which way round the labels are (a DataFrame, a list of
    arrays); only then can there be more clusterings than objects.
    """
    if len(shape) != 2:
        raise ValueError(
            f"labels must be 2-D, (n_objects, n_clusterings), but have shape {shape}; for a single clustering pass "
            "labels.reshape(-1, 1)."
        )
    n_objects, n_clusterings = shape
    for n, what in ((n_objects, "sample(s)"), (n_clusterings, "feature(s)")):
        if n == 0:
            raise ValueError(
                f"labels are empty: 0 {what} (shape={shape}) while a minimum of 1 is required; rows are objects and "
                "columns are base clusterings."
            )
    if n_clusterings > n_objects and not columns_are_clusterings:
        raise ValueError(
            f"labels have shape {shape}, {n_clusterings} clusterings of {n_objects} sample(s), as if transposed: rows "
            "are objects and columns are base clusterings, so pass labels.T (or a list of columns, if there really are "
            "so few objects)."
        )


def columns_of_one_length(lengths: Iterable[int]) -> None:
    """Refuse lists of columns whose lengths differ."""
    lengths = list(lengths)
    for position, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"labels: every base clustering must label the same objects, but clustering 0 has {lengths[0]} labels "
                f"and clustering {position} has {length}."
            )


def numeric_column(column: np.ndarray, name: object) -> np.ndarray:
    """Return float labels as integers with ``MISSING`` for NaN; refuse complex, infinite and fractional labels."""
    if column.dtype.kind == "c":
        raise ValueError(
            f"labels of clustering {name!r} are complex numbers: Complex data not supported; labels are integers or "
            "strings."
        )
    missing = np.isnan(column)
    known = column[~missing]
    if np.isinf(known).any():
        raise ValueError(
            f"labels of clustering {name!r} contain infinity; labels are integers or strings, and NaN means missing."
        )
    if known.size and (known != np.floor(known)).any():
        example = float(known[known != np.floor(known)][0])
        raise ValueError(
            f"labels of clustering {name!r} are not whole numbers ({example:g} was found): pass cluster labels, not "
            "feature values."
        )
    bits = min(np.finfo(column.dtype).nmant + 1, 53)
    if known.size and float(np.abs(known).max()) >= 2.0**bits:  # 2**53 may have been 2**53 + 1
        raise ValueError(
            f"labels of clustering {name!r} are {column.dtype} of 2**{bits} or more, where whole numbers are not told "
            "apart any more; pass integers or strings."
        )
    whole = np.full_like(column, MISSING, dtype=np.int64)
    whole[~missing] = known.astype(np.int64)
    return whole


def non_negative(smallest: int, name: object) -> None:
    """Refuse integer labels below ``MISSING``."""
    if smallest < MISSING:
        raise ValueError(
            f"labels of clustering {name!r} contain {smallest}: integer labels are >= 0, and -1 alone means missing."
        )


def hashable_labels(error: Exception, name: object) -> TypeError:
    """Return the refusal of labels that cannot be told apart (lists, dicts, …)."""
    return TypeError(f"labels of clustering {name!r} must be integers or strings ({error}).")


def clusterings_say_something(n_clusters: Iterable[int], names: list, n_objects: int) -> None:
    """Refuse clusterings with no label at all; warn of those that put every object into one cluster."""
    n_clusters = list(n_clusters)
    for name, k in zip(names, n_clusters, strict=True):
        if k == 0:
            raise ValueError(f"labels of clustering {name!r} are all missing; leave that clustering out.")
    constant = [str(name) for name, k in zip(names, n_clusters, strict=True) if k == 1]
    if constant and n_objects > 1:
        warnings.warn(
            f"constant clusterings tell nothing apart: {', '.join(constant[:5])}{' …' if len(constant) > 5 else ''} "
            f"({len(constant)} of {len(names)}) put every object into one cluster.",
            UserWarning,
            stacklevel=4,
        )


def objects_are_labelled(unlabelled: np.ndarray, start: int = 0) -> None:
    """Refuse objects whose label is missing in every clustering; ``unlabelled`` is a mask of them from ``start`` on."""
    if unlabelled.any():
        raise ValueError(
            f"labels: {int(unlabelled.sum())} object(s) have no label in any clustering, the first is object "
            f"{start + int(unlabelled.argmax())}; leave them out (drop_unlabelled=True where a file is read)."
        )


def not_nothing(labels: object) -> None:
    """Refuse things that are no label matrix at all."""
    if hasattr(labels, "obs") and hasattr(labels, "obsm"):  # whose columns would be looked at row by row
        raise TypeError(
            "labels must be base clusterings, not AnnData: pass adata.obs[columns] with the columns that hold them, "
            f"of {listed(labels.obs.columns)}."
        )
    nothing = isinstance(labels, (str, bytes, dict, set, frozenset)) and not hasattr(labels, "tocsr")
    if labels is None or nothing or np.isscalar(labels) or type(labels).__name__ == "NAType":
        raise TypeError(
            f"labels must be an array (n_objects, n_clusterings), a DataFrame or a list of columns, not "
            f"{type(labels).__name__}."
        )


def dense(labels: Any) -> None:
    """Refuse sparse matrices."""
    if hasattr(labels, "tocsr"):
        raise TypeError(
            "labels are a sparse matrix, but Sparse data was passed where dense cluster labels are needed; pass "
            "labels.toarray()."
        )


def list_of_columns(shapes: list[tuple[int, ...]]) -> None:
    """Refuse lists whose elements are not 1-D columns of one length, with at least one label each."""
    if not shapes or (len(set(shapes)) == 1 and len(shapes[0]) != 1):
        label_matrix_shape((len(shapes), *shapes[0]) if shapes else (0, 0), columns_are_clusterings=True)
    for position, shape in enumerate(shapes):
        if len(shape) != 1:
            raise ValueError(
                "labels: in a list every element is one base clustering, a 1-D column of labels, but element "
                f"{position} is {'no column' if not shape else f'{len(shape)}-D'}."
            )
    columns_of_one_length(shape[0] for shape in shapes)
    label_matrix_shape((shapes[0][0], len(shapes)), columns_are_clusterings=True)


def columns_not_rows(n_columns: int, length: int) -> None:
    """Refuse nested lists with more clusterings than objects, where rows were most likely meant."""
    if n_columns > length:
        raise ValueError(
            f"labels are a list of {n_columns} lists of {length} label(s), and in a list each element is one base "
            "clustering, so this looks transposed: pass numpy.array(labels) if each element is an object (or a list of "
            "arrays, if there really are so few objects)."
        )


def clustering_names(names: Any, n_clusterings: int) -> list:
    """Return the names as a list, or refuse them if they are not one for each clustering."""
    try:
        given = None if isinstance(names, (str, bytes)) else list(names)
    except TypeError:  # arrays without a dimension pass for iterable
        given = None
    if given is None:
        raise TypeError(f"names must be a list with one name for each clustering, not {shown(names)}.")
    if len(given) != n_clusterings:
        raise ValueError(f"names must be one for each clustering, but {len(given)} were given for {n_clusterings}.")
    return given


# --- soft base clusterings --------------------------------------------------------------------------------------------

SUM_OF_ROWS = 1e-4  # how far from 1 memberships of float32 may sum to
ROUNDED = 1e-9  # up to which a negative membership is one of 0


def matrix_of_memberships(clustering: Any, name: object) -> Any:
    """Return nested lists as an array and anything else as it is; refuse rows of different lengths."""
    if not isinstance(clustering, (list, tuple)):
        return clustering
    try:
        return np.asarray(clustering)
    except ValueError:
        raise ValueError(
            f"labels: clustering {name!r} is soft, and its rows differ in length; pass one membership a cluster in "
            "every row."
        ) from None


def soft_clusterings(shapes: list[tuple[int, ...]]) -> None:
    """Refuse lists whose elements are not labels (N,) or memberships (N, k_h) of the same objects, at least one."""
    for position, shape in enumerate(shapes):
        if len(shape) not in (1, 2) or shape[1:] == (0,):
            raise ValueError(
                f"labels: in a list every element is one base clustering, labels (N,) or memberships (N, k), but "
                f"element {position} has shape {shape}."
            )
        if shape[0] != shapes[0][0]:
            raise ValueError(
                f"labels: every base clustering must be of the same objects, but clustering 0 has {shapes[0][0]} rows "
                f"and clustering {position} has {shape[0]}."
            )
    label_matrix_shape((shapes[0][0], len(shapes)), columns_are_clusterings=True)


def memberships(matrix: Any, name: object) -> Any:
    """Return a mask of the rows (NaN throughout) that are missing, or refuse a matrix that is no soft clustering."""
    if matrix.dtype.kind != "f":
        raise TypeError(
            f"labels: clustering {name!r} is 2-D, a soft clustering, and its memberships must be real numbers, not "
            f"{matrix.dtype}; pass a column of labels if it is a hard one."
        )
    gone = matrix != matrix
    missing = gone.all(axis=1)
    partly = gone.any(axis=1) & ~missing
    if partly.any():
        raise ValueError(
            f"labels: clustering {name!r} is soft, and row {int(partly.argmax())} has NaN beside numbers; make the "
            "whole row NaN where an object is missing."
        )
    negative = (matrix < -ROUNDED).any(axis=1)
    if negative.any():
        raise ValueError(
            f"labels: clustering {name!r} is soft, and row {int(negative.argmax())} has a negative membership; "
            "memberships are from 0 on and sum to 1 in each row."
        )
    sums = matrix.sum(axis=1)
    off = ~missing & ~(abs(sums - 1.0) <= SUM_OF_ROWS)
    if off.any():
        row = int(off.argmax())
        raise ValueError(
            f"labels: clustering {name!r} is soft, and row {row} sums to {float(sums[row]):g}; memberships must sum to "
            "1 in each row, or be NaN throughout where an object is missing (labels are 1-D columns)."
        )
    if missing.all():
        raise ValueError(f"labels of clustering {name!r} are all missing; leave that clustering out.")
    return missing


def soft_needs_all_objects(reduction: Any) -> None:
    """Refuse reductions of soft clusterings, which have no label rows."""
    if reduction is not None:
        raise ValueError(
            f"reduction={shown(reduction)} works on rows of labels, and soft clusterings have none; leave it None, or "
            "pass the argmax of the memberships as labels."
        )


def soft_in_one_piece(clusterings: Iterable[Any]) -> None:
    """Refuse Dask arrays among soft clusterings."""
    if any(hasattr(clustering, "__dask_graph__") for clustering in clusterings):
        raise TypeError(
            "labels have soft clusterings in Dask arrays, which are worked on in one piece: pass .compute() of each."
        )


def correspondence_penalties(alpha: Any, beta: Any, n_clusters: int | None) -> None:
    """Refuse weights of SCEC's penalties with which a denominator of its steps could be 0 or negative."""
    alpha, beta = between(alpha, "alpha", 0.0, 1e9), real(beta, "beta", above=0.0, at_most=1e9)
    most = beta * integer(n_clusters, "n_clusters", minimum=1)
    if alpha >= most:
        raise ValueError(
            f"alpha={alpha:g} must be below beta * n_clusters = {most:g}, so that the objective cannot rise; take a "
            "smaller alpha or a larger beta."
        )


def first_correspondences(init: Any, n_clusters: list[int], k: int) -> list[np.ndarray]:
    """Return where SCEC is to begin, one positive (k_h, k) a clustering, as float64; or refuse it."""
    if not isinstance(init, (list, tuple)):
        raise TypeError(
            "init must be 'kmeans', 'clustering', 'random' or a list of one array a clustering, not "
            f"{type(init).__name__}."
        )
    if len(init) != len(n_clusters):
        raise ValueError(
            f"init must be 'kmeans', 'clustering', 'random' or one array a clustering, but {len(init)} were given for "
            f"{len(n_clusters)}."
        )
    found = []
    for position, (matrix, k_h) in enumerate(zip(init, n_clusters, strict=True)):
        matrix = _array_of(matrix, f"init: array {position} must be a matrix of numbers")
        if matrix.shape != (k_h, k) or matrix.dtype.kind not in "iuf":
            raise ValueError(
                f"init: array {position} must be numbers of shape {(k_h, k)}, own clusters × those of the consensus, "
                f"but has shape {matrix.shape} and dtype {matrix.dtype}."
            )
        if not ((matrix >= 1e-100) & (matrix <= 1e100)).all():
            raise ValueError(
                f"init: array {position} must be positive, for what is 0 would stay 0, and from 1e-100 to 1e100."
            )
        found.append(matrix.astype(np.float64))
    return found


def matrix_of_numbers(values: Any, name: str) -> np.ndarray:
    """Return a matrix of numbers in host memory, or refuse what is none."""
    matrix = _array_of(values, f"{name} must be a matrix of numbers")
    if matrix.ndim != 2 or matrix.dtype.kind not in "iufb":
        raise ValueError(f"{name} must be a matrix of numbers, but has shape {matrix.shape} and dtype {matrix.dtype}.")
    return matrix


def _array_of(values: Any, must: str) -> np.ndarray:
    """Return what is given as an array in host memory, or refuse what is none; ``must`` says what it is to be."""
    from gpuens import device

    try:
        return np.asarray(device.to_host(values) if device.kind_of(values) == "cuda" else values)
    except ValueError as error:
        raise ValueError(f"{must}, not lists of different lengths.") from error


# --- label vectors ----------------------------------------------------------------------------------------------------


def label_vector(shape: tuple[int, ...], kind: str, name: object) -> None:
    """Refuse things (of type ``kind``) that are not one label for each of at least one object."""
    if len(shape) == 0:
        raise TypeError(f"{name} must be a list, array or Series of labels, one an object, not {kind}.")
    if len(shape) != 1:
        raise ValueError(f"{name} must be 1-D, one label an object, but has shape {shape}; pass one column of it.")
    if shape[0] == 0:
        raise ValueError(f"{name} is empty; pass the labels of at least one object.")


def vectors_of_one_length(lengths: list[int], names: list) -> None:
    """Refuse label vectors of different lengths."""
    for name, length in zip(names, lengths, strict=True):
        if length != lengths[0]:
            raise ValueError(
                f"labelings must label the same objects, but {names[0]} has {lengths[0]} labels and {name} has "
                f"{length}; pass labelings of one length, with -1 or None where a label is missing."
            )


def labelled_in_common(n_objects: int, a: object, b: object) -> None:
    """Refuse to compare two labelings that label no object in common."""
    if n_objects == 0:
        raise ValueError(
            f"{a} and {b} cannot be compared: no object has a label in both; -1, NaN and None mean that it is missing."
        )


def enough_labelings(n: int) -> None:
    """Refuse to compare a single labeling with itself."""
    if n < 2:
        raise ValueError(
            f"labelings: {n} was given, and at least 2 are needed for a comparison; pass those of more runs."
        )


# --- features and base clusterings ------------------------------------------------------------------------------------


def features_are_something(X: Any) -> None:
    """Refuse things that are no feature matrix at all."""
    if hasattr(X, "obs") and hasattr(X, "obsm"):
        raise TypeError("X must be features, not AnnData: pass adata.X, or adata.obsm['X_pca'].")
    if X is None or isinstance(X, (str, bytes, dict, set, frozenset)) or np.isscalar(X):
        raise TypeError(f"X must be an array, a DataFrame or a sparse matrix of features, not {type(X).__name__}.")


def ragged_features(X: Any) -> ValueError:
    """Return the refusal of nested lists that are no matrix."""
    return ValueError(
        f"X must be 2-D, (n_objects, n_features), but the elements of this {type(X).__name__} differ in length."
    )


def features_shape(shape: tuple[int, ...]) -> None:
    """Refuse features that are not (n_objects, n_features) with at least one of each."""
    if len(shape) != 2:
        raise ValueError(
            f"X must be 2-D, (n_objects, n_features), but has shape {shape}; for a single feature pass "
            "X.reshape(-1, 1)."
        )
    if 0 in shape:
        raise ValueError(f"X is empty: {shape[0]} object(s) and {shape[1]} feature(s) were found.")


def features_are_numbers(dtype: Any, column: object = None) -> None:
    """Refuse features that are no real numbers; ``column`` names the one that was found in a DataFrame."""
    if getattr(dtype, "kind", "O") not in "iufb":
        where = "X has" if column is None else f"X has, in column {column!r},"
        raise TypeError(f"{where} values of type {dtype}, but features are real numbers: leave out or encode the rest.")


def features_given(X: Any, method: str) -> None:
    """Refuse to leave the features to a method that works on them."""
    if X is None:
        raise TypeError(
            f"X is not given, and {method} finds the neighbours of objects in their features: pass fit(labels, "
            "X=features)."
        )


def labels_in_memory(labels: Any, method: str) -> None:
    """Refuse Dask's arrays where all objects are needed together."""
    if hasattr(labels, "__dask_graph__"):
        raise TypeError(
            f"labels are in chunks, but {method} finds the neighbours of objects among all others: pass "
            "labels.compute(), or take a method that goes by the labels alone."
        )


def no_features(method: str) -> TypeError:
    """Return the refusal of features for a method that goes by labels alone."""
    return TypeError(f"X was given, but method {method!r} goes by the labels alone; leave it out.")


def features_of_objects(X: Any, n_objects: int) -> None:
    """Refuse features that are sparse, or not of so many objects."""
    if hasattr(X, "tocsr"):
        raise TypeError("X is a sparse matrix, but reference sets take dense features: pass X.toarray().")
    if X.shape[0] != n_objects:
        raise ValueError(
            f"X has {X.shape[0]} rows and the labels are those of {n_objects} objects; pass the features of the same "
            "objects in the same order."
        )


def squares_of_features(largest: float, n_features: int) -> None:
    """Refuse features whose squared distances are no numbers any more."""
    if not math.isfinite(4.0 * n_features * largest * largest):
        raise ValueError(
            f"X has a feature of size {largest:.3g}, whose square is beyond float64; scale the features, or take out "
            "what stands for missing."
        )


def n_neighbors(value: Any, n_objects: int) -> int:
    """Return the number of neighbours wanted, or refuse more than there are others."""
    if n_objects < 2:
        raise ValueError(f"n_neighbors={shown(value)} needs others, but there is {n_objects} object.")
    return integer(value, "n_neighbors", minimum=1, maximum=n_objects - 1)


def cluster_similarity(values: Any, n_clusters: int) -> np.ndarray:
    """Return a similarity of all clusters as float64 (N_c, N_c), or refuse what is not symmetric and finite."""
    array = _array_of(values, "similarity must be a matrix of numbers")
    if array.shape != (n_clusters, n_clusters) or array.dtype.kind not in "iuf":
        raise ValueError(
            f"similarity must be a matrix of numbers of the {n_clusters} clusters, ({n_clusters}, {n_clusters}), but "
            f"has shape {array.shape} and dtype {array.dtype}."
        )
    if not np.isfinite(array).all() or (array != array.T).any():
        raise ValueError("similarity must be finite and symmetric; pass (S + S.T) / 2.")
    return np.ascontiguousarray(array, dtype=np.float64)


def sparse_on_cpu(device: str, kind: str) -> None:
    """Refuse sparse features where k-means takes none; ``kind`` is the memory that they are in."""
    if kind == "cuda":
        raise TypeError("X is a sparse matrix in GPU memory, but k-means there takes dense features: pass X.toarray().")
    if device != "cpu":
        raise TypeError(
            f"X is a sparse matrix, but device={device!r} takes dense features: pass X.toarray() or device='cpu'."
        )


def features_are_finite(values: np.ndarray) -> None:
    """Refuse features with NaN or infinity."""
    # the extremes carry NaN and infinity, and need no mask as large as X
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        found = np.argwhere(~np.isfinite(values))
        where = f", the first at row {found[0][0]}, column {found[0][1]}" if values.ndim == 2 else ""
        raise ValueError(
            f"X contains {len(found)} value(s) that are NaN or infinite{where}; fill them in or leave those objects "
            "out."
        )


def share(value: Any, total: int, name: str) -> int:
    """Return how many of ``total`` a share (float in (0, 1]) or a number (int) asks for, or refuse it."""
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return max(1, round(real(value, name, above=0, at_most=1) * total))
    return integer(value, name, minimum=1, maximum=total)


def sample_size(size: Any) -> int | float:
    """Return a number of objects (int ≥ 1) or a share of them (float in (0, 1]), or refuse it."""
    if isinstance(size, numbers.Real) and not isinstance(size, (numbers.Integral, bool, np.bool_)):
        return real(size, "size", above=0, at_most=1)
    return integer(size, "size", minimum=1)


def k_range(n_clusters: Any, n_objects: int, n_drawn: int) -> tuple[int, int]:
    """Return the lowest and the highest k that ``n_clusters`` allows, or refuse it.

    ``n_drawn`` objects are there to be clustered; "sqrt" is about all ``n_objects``.
    """
    pair = n_clusters if isinstance(n_clusters, (tuple, list)) else (n_clusters, n_clusters)
    if len(pair) != 2:
        raise ValueError(f"n_clusters must be a number, 'sqrt' or a pair (lowest, highest), not {shown(n_clusters)}.")
    bounds = []
    for end in pair:
        if isinstance(end, str):
            choice(end, "n_clusters", ["sqrt"])
            end = math.isqrt(n_objects)
        bounds.append(integer(end, "n_clusters", minimum=1))
    low, high = bounds
    if low > high:
        raise ValueError(
            f"n_clusters={shown(n_clusters)} is an empty range, {low} to {high}, for {n_objects} object(s); give the "
            "lower number first, and numbers instead of 'sqrt' for so few objects."
        )
    if high > n_drawn:
        raise ValueError(
            f"n_clusters={shown(n_clusters)} asks for up to {high} clusters of {n_drawn} object(s); ask for fewer "
            "clusters or draw more objects."
        )
    return low, high


def generator(random_state: Any) -> np.random.Generator:
    """Return NumPy's generator for a seed, the one given, or one seeded by a RandomState; or refuse it."""
    kinds = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)
    if random_state is None or isinstance(random_state, kinds):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.RandomState):  # scikit-learn's habit; a fresh seed is drawn of it each time
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    # as long as NumPy advises: secrets.randbits(128)
    return np.random.default_rng(integer(random_state, "random_state", minimum=0, maximum=2**128 - 1))


# --- files ------------------------------------------------------------------------------------------------------------


def file_kind(path: Any, kinds: Iterable[str]) -> str:
    """Return the ending of a path that is one of ``kinds``, or refuse the path."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be the name of a file, not {type(path).__name__}.")
    name = os.path.basename(os.fspath(path))
    found = [kind for kind in kinds if name.lower().endswith(kind)]
    if not found:
        raise ValueError(f"path {name!r} does not say what kind of file it is: it must end in {', '.join(kinds)}.")
    return max(found, key=len)


def readable_path(path: str | os.PathLike, *, folder: bool = False) -> None:
    """Refuse paths where there is no file that can be opened; ``folder``: files of this kind may be directories."""
    path = os.fspath(path)
    if os.path.isdir(path) and not folder:
        raise IsADirectoryError(f"path {path!r} is a directory; name a file.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"path {path!r} does not exist; check the name.")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"path {path!r} may not be read by this user; change its permissions or choose another.")


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


def gist(error: Exception) -> str:
    """Return what an error says as a part of a sentence."""
    text = " ".join(str(error).split()).rstrip(".!") or "nothing more is known"
    return f"{type(error).__name__}: {text.replace('. ', '; ')[:300]}"


def unreadable(path: str | os.PathLike, error: Exception) -> ValueError:
    """Return the refusal of a damaged file."""
    return ValueError(f"path {os.fspath(path)!r} cannot be read as its name says, write the file anew ({gist(error)}).")


@contextmanager
def reading(path: str | os.PathLike) -> Iterator[None]:
    """Turn whatever goes wrong in the reader of a damaged file into one sentence."""
    try:
        yield
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # NumPy, pandas, pyarrow, h5py, anndata and zlib raise nearly all that there is
        raise unreadable(path, error) from error


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
        integer(workers, "workers", minimum=1, maximum=MOST_WORKERS)


def clusterings_in_chunks(names: Any, device: str) -> None:
    """Refuse what base clusterings of features in chunks cannot have."""
    if names is not None:
        raise ValueError("names are of an ensemble, and labels in chunks are a Dask array without; leave names out.")
    if device not in ("auto", "cpu"):
        raise ValueError(f"device={device!r} is for features in one piece; k-means of chunks works on the CPU.")


def chunk_options(scheduler: str | None, workers: int | None, key: str | None) -> None:
    """Refuse a number of workers where no cluster of this machine is made, and keys of files not read in chunks."""
    if scheduler is not None and key is not None:
        raise ValueError(f"--key={key} is for npz files, which are not read in chunks; leave --scheduler out.")
    if workers is not None:
        integer(workers, "--workers", minimum=1, maximum=MOST_WORKERS)
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


def drawn_from_chunks(objects: Any, n_objects: int) -> None:
    """Refuse to fit each k-means to all objects of a Dask array."""
    if share(objects, n_objects, "objects") == n_objects:
        raise ValueError(
            "X is in chunks, and each k-means is fitted to objects drawn from all of them: say how many, such as "
            "objects=100_000."
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
    label_matrix_shape(shape, columns_are_clusterings=True)
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


def listed(names: Iterable) -> str:
    """Return names as a list to read, the first ten of many."""
    names = list(names)
    return (", ".join(map(repr, names[:10])) or "none") + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def writable_labels(labels: np.ndarray) -> None:
    """Refuse what is no labelling (n_objects,) and no label matrix (n_objects, n_clusterings)."""
    if labels.ndim not in (1, 2) or 0 in labels.shape:
        raise ValueError(f"labels must be (n_objects,) or (n_objects, n_clusterings), but have shape {labels.shape}.")
    if labels.dtype.kind not in "iubU":
        raise TypeError(f"labels must be integers or strings to be written, but have dtype {labels.dtype}.")


# --- data sets --------------------------------------------------------------------------------------------------------


def data_folder(folder: str | os.PathLike, name: str) -> None:
    """Refuse directories of data sets that are not there; ``name`` says who gave it."""
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{name} names {os.fspath(folder)!r}, which is no directory; name one with data sets.")


def dataset_name(name: Any) -> None:
    """Refuse what cannot be the name of a data set."""
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(f"data set must be given by a name or the path of a file, not {type(name).__name__}.")


def unknown_dataset(name: str, names: list[str], folder: object) -> ValueError:
    """Return the refusal of a name that no data set has."""
    where = "set GPUENS_DATA to a directory of npz files for others" if folder is None else f"{str(folder)!r} included"
    return ValueError(f"data set {name!r} is unknown; there are {listed(names)} ({where}).")


def no_network(name: str, error: Exception) -> ConnectionError:
    """Return the refusal of a data set that could not be fetched."""
    return ConnectionError(
        f"data set {name!r} could not be downloaded ({gist(error)}): connect to the network, or set GPUENS_DATA to a "
        f"directory with {name}.npz."
    )


def one_class_each(n_classes: int, n_objects: int, source: object) -> None:
    """Refuse data sets whose classes do not match their objects."""
    if n_classes != n_objects:
        raise ValueError(f"data set {str(source)!r} has {n_objects} objects in X but {n_classes} in y; write it anew.")


# --- graphs -----------------------------------------------------------------------------------------------------------


def vertex_weights(values: Any) -> np.ndarray:
    """Return one whole number from 1 on for each vertex as int64, or refuse them."""
    array = _array_of(values, "weights must be whole numbers, one a vertex")
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) == 0:
        raise ValueError(
            f"weights must be whole numbers, one a vertex, but have shape {array.shape} and dtype {array.dtype}."
        )
    whole = array.astype(np.int64)
    if whole.min() < 1:  # unsigned ones beyond int64 too
        raise ValueError(f"weights must be whole numbers from 1 on, but {array[whole.argmin()]} was found.")
    return whole


def n_parts(value: Any, n_vertices: int) -> int:
    """Return the number of parts wanted, or refuse one that leaves parts without a vertex."""
    k = integer(value, "n_parts", minimum=1)
    if k > n_vertices:
        raise ValueError(f"n_parts={k} is more than the {n_vertices} vertices of the graph; ask for fewer parts.")
    return k


def similarity_shape(shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    """Refuse similarities, or rows of them, that are not those of the vertices that have weights."""
    if tuple(shape) != expected:
        raise ValueError(
            f"similarities must have shape {expected} to go with the weights, but have shape {tuple(shape)}."
        )


def usable_similarities(rows: np.ndarray, start: int) -> None:
    """Refuse similarities that are negative, infinite or NaN; ``start`` is the number of the first row."""
    if rows.size and not (rows.min() >= 0 and rows.max() < np.inf):
        row, column = np.argwhere(~((rows >= 0) & (rows < np.inf)))[0]
        raise ValueError(
            f"similarities must be finite and at least 0, but that of {start + row} and {column} is "
            f"{rows[row, column]}."
        )


def symmetric(i: int, j: int, there: float, back: float) -> None:
    """Refuse similarities that differ by direction; i < 0 if none does."""
    if i >= 0:
        raise ValueError(
            f"similarities must be symmetric, but that of {i} to {j} is {there} and that of {j} to {i} is {back}; pass "
            "(S + S.T) / 2."
        )


def integers_hold(n_vertices: int, weight: int, largest: int) -> None:
    """Refuse graphs with more edges, or more weight of the vertices, than METIS's integers count."""
    if n_vertices * n_vertices > largest // 4 or weight > largest // 4:
        raise ValueError(
            f"a graph of {n_vertices} vertices that weigh {weight} is beyond METIS's {largest.bit_length() + 1}-bit "
            "integers; work on a sample or give smaller weights."
        )


def some_edges(n_edges: int) -> None:
    """Warn of graphs without edges."""
    if n_edges == 0:
        warnings.warn(
            "similarities are all 0 between different vertices: which of them share a part is arbitrary.",
            UserWarning,
            stacklevel=3,
        )


def n_meta_clusters(value: Any, n_clusters: int) -> int:
    """Return the number of meta-clusters wanted, or refuse one that the ensemble's clusters cannot give."""
    k = integer(value, "n_clusters", minimum=1)
    if k > n_clusters:
        raise ValueError(
            f"n_clusters={k} is more than the {n_clusters} clusters of all clusterings that meta-clusters are made of; "
            "ask for fewer or add clusterings."
        )
    return k


def all_chosen(n_chosen: int, n_clusters: int) -> None:
    """Warn of meta-clusters that are no object's first choice."""
    if n_chosen < n_clusters:
        warnings.warn(
            f"only {n_chosen} of {n_clusters} clusters came out: no object is associated most with the other "
            "meta-clusters.",
            UserWarning,
            stacklevel=3,
        )


def rock_theta(theta: Any) -> float:
    """Return the θ of ROCK's goodness as a float, or refuse one at which its denominators vanish."""
    found = number(theta, "theta")
    if not 0.0 <= found <= 0.999999:
        raise ValueError(
            f"theta must be from 0 to 0.999999, for at 1 every goodness of merging is infinite, but is {found}."
        )
    return found


def links(rows: np.ndarray, expected: tuple[int, int], total: float) -> float:
    """Return ``total`` and the sum of these links, or refuse what are no links or more than int64 counts."""
    if rows.shape != expected or rows.dtype.kind not in "iu":
        raise ValueError(
            f"links must be integers of shape {expected}, but have shape {rows.shape} and dtype {rows.dtype}."
        )
    if rows.size and rows.min() < 0:
        raise ValueError(f"links must be counts from 0 on, but {rows.min()} was found.")
    total += float(rows.sum(dtype=np.float64))
    if total > 2.0**62:
        raise ValueError("links add up to more than int64 counts; work on a sample, reduction=Sample(…).")
    return total


def merged_without_links(k: int, n_separate: int) -> None:
    """Warn of merges among clusters that no link joins."""
    if k < n_separate:
        warnings.warn(
            f"n_clusters={k} merges among {n_separate} clusters that have no links between them, the smallest of "
            "them first; ask for more clusters or take a smaller theta.",
            UserWarning,
            stacklevel=3,
        )


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


def command_options(given: Iterable[str], method: str, allowed: Iterable[str]) -> None:
    """Refuse options of the command line that a method does not have."""
    for option in given:
        if option not in allowed:
            raise ValueError(f"{option} is no option of method {method!r}, which has {', '.join(allowed)}.")


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
        integer(n_clusters, "n_clusters", minimum=1)
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
    return integer(clustering, "clustering", minimum=0, maximum=len(names) - 1)


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


MOST_STARTS = 10_000  # beyond these a run would seem to hang, and nothing gets better
MOST_ITERATIONS = 1_000_000
LARGEST = 2**63 - 1  # whole number that arrays hold

_NO_NUMBERS = (bool, np.bool_, np.timedelta64)  # though Python takes the first, and NumPy the last, for numbers


def shown(value: Any) -> str:
    """Return a value as a part of a sentence: on one line, and no longer than is of use."""
    if isinstance(value, int) and abs(value) >= 2**128:  # Python writes no number of 5,000 digits
        return f"a {'negative ' * (value < 0)}whole number of about {1 + int(math.log10(abs(value)))} digits"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # repr is the caller's own, and may be broken
        text = ""
    if not text:
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:75]} …"


def integer(value: Any, name: str, *, minimum: int, maximum: int = LARGEST) -> int:
    """Return ``value`` as an int within its bounds, or refuse it."""
    if isinstance(value, _NO_NUMBERS) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, not {shown(value)}.")
    value = int(value)
    if not minimum <= value <= maximum:
        limits = f"at least {minimum}" if value < minimum and maximum >= LARGEST else f"from {minimum} to {maximum}"
        raise ValueError(f"{name} must be {limits}, but is {shown(value)}.")
    return value


def starts(n_init: Any) -> int:
    """Return a number of starts as an int, or refuse it."""
    return integer(n_init, "n_init", minimum=1, maximum=MOST_STARTS)


def iterations(max_iter: Any) -> int:
    """Return the most iterations of a start as an int, or refuse it."""
    return integer(max_iter, "max_iter", minimum=1, maximum=MOST_ITERATIONS)


def number(value: Any, name: str, kind: str = "a number") -> float:
    """Return any real number as a float, infinite where it is too large for one, or refuse what is none."""
    if isinstance(value, _NO_NUMBERS) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {kind}, not {shown(value)}.")
    try:
        return float(value)
    except OverflowError:  # of Python's int and Fraction
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def real(value: Any, name: str, *, above: float = -np.inf, at_most: float = np.inf) -> float:
    """Return ``value`` as a finite float in (above, at_most], or refuse it."""
    found = number(value, name)
    if not (math.isfinite(found) and above < found <= at_most):
        limit = "finite" if at_most == np.inf else f"at most {at_most:g}"
        raise ValueError(
            f"{name} must be {'' if above == -np.inf else f'above {above:g} and '}{limit}, but is {found}."
        )
    return found


def between(value: Any, name: str, low: float, high: float) -> float:
    """Return ``value`` as a float in [low, high], or refuse it."""
    found = number(value, name)
    if not low <= found <= high:
        raise ValueError(f"{name} must be from {low:g} to {high:g}, but is {found}.")
    return found


def fraction(value: Any, name: str, default: str) -> float | None:
    """Return ``value`` as a float in [0, 1], or None, which stands for a default, as it is; or refuse it."""
    if value is None:
        return None
    found = number(value, name, f"a number from 0 to 1, or None for {default}")
    if not 0.0 <= found <= 1.0:
        raise ValueError(f"{name} must be from 0 to 1, or None for {default}, but is {found}.")
    return found


def choice(value: Any, name: str, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``allowed``, or refuse it and list them."""
    allowed = list(allowed)
    if not isinstance(value, str) or value not in allowed:
        kind = ValueError if isinstance(value, str) else TypeError
        near = _nearest(value, allowed) if isinstance(value, str) else None
        hint = f" (did you mean {near!r}?)" if near else ""
        raise kind(f"{name} must be one of {', '.join(map(repr, allowed))}, not {shown(value)}{hint}.")
    return value


def _nearest(text: str, allowed: list[str]) -> str | None:
    """Return the word that was probably meant: in capitals, with other dashes, or with a slip of the hand."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(text[:100].lower().replace("_", "-"), allowed, n=1, cutoff=0.75)), None)


def parameters(given: Iterable[str], method: str, allowed: Iterable[str]) -> None:
    """Refuse parameters that a method does not have."""
    allowed = list(allowed)
    for name in given:
        if name not in allowed:
            raise TypeError(f"{name!r} is no parameter of method {method!r}, which has {', '.join(allowed)}.")


def reducer(value: Any) -> Any:
    """Return what can reduce an ensemble, or refuse it."""
    # classes have the method too, but no ensemble can be given to it; NumPy's functions have another one of that name
    if callable(value) or not callable(getattr(value, "reduce", None)):
        raise TypeError(
            f"reduction must be None, have a method reduce(ensemble) as CoreGroups() has, or be a name with parameters "
            f"such as 'sample:5000', not {shown(value)}."
        )
    return value


def reduced(found: Any, kind: type, reduction: Any) -> Any:
    """Return what a reduction gave, or refuse it if it is none of its ``kind``."""
    if not isinstance(found, kind):
        raise TypeError(
            f"reduction {shown(reduction)} gave {shown(found)}, but reduce(ensemble) must return a gpuens.Reduction."
        )
    return found


def reduction_parameters(parts: list[str], name: str, allowed: list[str]) -> dict[str, Any]:
    """Return {parameter: value} of texts such as "size=5000" and "0.2" (the first parameter), or refuse them."""
    given: dict[str, Any] = {}
    for part in parts:
        parameter, equals, text = part.partition("=")
        if not equals:
            parameter, text = (allowed or [part])[0], part
        if parameter not in allowed or parameter in given:
            has = ", ".join(allowed) if allowed else "no parameters"
            raise ValueError(f"reduction {name!r} cannot take {part!r}; it has {has}, each given once as name=value.")
        given[parameter] = _literal(text)
    return given


def _literal(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None if text == "None" else text


def nothing_missing(names: list[str], name: str) -> None:
    """Refuse a reduction by name without what it needs."""
    if names:
        raise ValueError(f"reduction {name!r} needs {', '.join(names)}: write for example {name}:{names[0]}=5000.")


def all_objects_in_tree(are: bool, name: str) -> None:
    """Refuse the merge list of all objects where the dendrogram is that of a sample."""
    if not are:
        raise AttributeError(
            f"{name} is the merge list of all objects, and this dendrogram is that of a sample; use dendrogram_, whose "
            "leaves are the rows of reduction_.ensemble."
        )


def one_cut(n_clusters: Any) -> None:
    """Refuse two ways to cut one dendrogram; called when a distance threshold is given."""
    if n_clusters is not None:
        raise ValueError(
            "n_clusters and distance_threshold both say where to cut; give one of them and leave the other None."
        )


def clusters_came_out(found: int, wanted: int) -> None:
    """Warn where fewer clusters than wanted were found."""
    if found < wanted:
        warnings.warn(
            f"only {found} of {wanted} clusters came out: the ensemble tells no more groups apart.",
            UserWarning,
            stacklevel=4,
        )


def cut_above_zero(k: int, n_separate: int) -> None:
    """Warn of cuts among clusters that have nothing but zero similarity between them."""
    if k < n_separate:
        warnings.warn(
            f"n_clusters={k} cuts among {n_separate} clusters that complete linkage leaves with zero similarity "
            "between them: which of those merged is arbitrary; average linkage does not have this trouble.",
            UserWarning,
            stacklevel=5,
        )


def n_clusters(value: Any, n_distinct: int, *, reduced: bool = False) -> int:
    """Return the number of clusters wanted, or refuse one that ``n_distinct`` distinct label rows cannot give.

    ``reduced``: whether they are what a reduction has left.
    """
    if value is None:
        raise ValueError("n_clusters is not given, and this method has no rule to choose it; pass n_clusters=….")
    k = integer(value, "n_clusters", minimum=1)
    if k > n_distinct and reduced:
        raise ValueError(
            f"n_clusters={k} is more than the {n_distinct} row(s) that the reduction has left; ask for fewer clusters "
            "or for a reduction that keeps more (a larger sample, a smaller tau)."
        )
    if k > n_distinct:
        raise ValueError(
            f"n_clusters={k} is more than the {n_distinct} distinct label row(s): objects with equal labels cannot be "
            "told apart, so ask for fewer clusters or add clusterings."
        )
    return k


def row_indices(indices: Any, n_objects: int, name: str) -> np.ndarray:
    """Return object indices as int64 (all of them for None), or refuse those that are out of range."""
    if indices is None:
        return np.arange(n_objects)
    if isinstance(indices, slice):
        try:
            return np.arange(n_objects)[indices]
        except (TypeError, ValueError):  # slice("a"), steps of 0
            raise ValueError(f"{name} must be a slice of whole numbers, not {shown(indices)}.") from None
    array = _array_of(indices, f"{name} must be a 1-D array of object indices")
    if array.dtype == bool and array.shape == (n_objects,):
        return np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be None, a slice, a mask over objects or a 1-D array of object indices.")
    if array.size and (array.min() < -n_objects or array.max() >= n_objects):
        raise ValueError(f"{name} contains an index outside 0 … {n_objects - 1}.")
    array = array.astype(np.int64)
    return np.where(array < 0, array + n_objects, array)


def block(
    rows: Any, cols: Any, n_objects: int, budget: int, what: str, *, bytes_per_col: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of a dense block of float64 as indices, or refuse one above the budget (bytes)."""
    rows, cols = row_indices(rows, n_objects, "rows"), row_indices(cols, n_objects, "cols")
    fits(
        (8 * len(rows) + bytes_per_col) * len(cols),
        budget,
        f"the {len(rows)} × {len(cols)} {what} block",
        "take a block of fewer rows or cols, or an estimator, none of which needs the matrix",
    )
    return rows, cols


def weights(values: Any, n: int, name: str = "weights") -> np.ndarray | None:
    """Return one positive finite weight a row (int64 where whole numbers were given, else float64), or refuse them."""
    if values is None:
        return None
    must = f"{name} must be {n} numbers, one a row"
    array = _array_of(values, must)
    if array.shape != (n,) or array.dtype.kind not in "iuf":
        raise ValueError(f"{must}, but have shape {array.shape} and dtype {array.dtype}.")
    if not np.isfinite(array).all() or (array <= 0).any():
        raise ValueError(f"{name} must be positive and finite.")
    whole = array.dtype.kind != "f"
    if not float(array.max()) * n <= (2.0**62 if whole else 1e300):
        raise ValueError(f"{name} add up to more than an array can hold, with {array.max():g} among them; scale them.")
    return array.astype(np.int64 if whole else np.float64)


def clustering_weights(values: Any, n_clusterings: int) -> np.ndarray:
    """Return λ, one finite weight from 0 on a clustering (float64, ones if not given), two of them positive."""
    if n_clusterings < 2:
        raise ValueError(
            "labels hold a single base clustering (1 feature(s)), and coupled similarities compare the clusters of at "
            "least 2; pass more clusterings."
        )
    if values is None:
        return np.ones(n_clusterings)
    must = f"weights must be {n_clusterings} numbers, one a clustering"
    array = _array_of(values, must)
    if array.shape != (n_clusterings,) or array.dtype.kind not in "iuf":
        raise ValueError(f"{must}, but have shape {array.shape} and dtype {array.dtype}.")
    array = array.astype(np.float64)
    scaled = array / array.max() if array.size and np.isfinite(array).all() and array.max() > 0 else array
    if not np.isfinite(array).all() or (array < 0).any() or np.count_nonzero(scaled) < 2:
        raise ValueError("weights must be finite and 0 or more, and at least 2 of them positive.")
    return scaled


def shares(values: np.ndarray, name: str) -> None:
    """Refuse numbers that are not from 0 to 1."""
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        wrong = values[~((values >= 0) & (values <= 1))][0]
        raise ValueError(f"{name} must be from 0 to 1, but {wrong} was found; scale them first.")


def neighbor_threshold(theta: Any) -> float | None:
    """Return θ as a float in [0, 1], or None as it is, or refuse it."""
    return fraction(theta, "theta", "the mean similarity")


def one_per_row(values: np.ndarray, n: int, name: str) -> None:
    """Refuse arrays that do not hold one value a row."""
    if values.ndim != 1 or len(values) != n:
        raise ValueError(f"{name} must hold one value for each of the {n} row(s), but have shape {values.shape}.")


def fits(needed: int, budget: int, what: str, instead: str) -> None:
    """Refuse work whose memory (bytes) is above the budget, before it starts."""
    if needed > budget:
        raise MemoryError(
            f"{what} needs {human_bytes(needed)} and {human_bytes(budget)} may be used; {instead} "
            "(GPUENS_MEMORY=… sets another limit)."
        )


def groups_too_many(n_rows: int, needed: int) -> MemoryError:
    """Return what is raised for core groups of all chunks that do not fit one process and have to."""
    return MemoryError(
        f"the core groups of all chunks, up to {n_rows}, need {human_bytes(needed)}, which do not fit one process; "
        "work on a sample, reduction=Sample(…), or on fewer clusterings (GPUENS_MEMORY=… sets another limit)."
    )


def rows_elsewhere() -> TypeError:
    """Return the refusal to look up what belongs to rows that stay in pieces."""
    return TypeError("the rows of this reduction stay in pieces, without numbers of their own; use of_rows(function).")


def rows_too_many(method: str, n_rows: int) -> MemoryError:
    """Return what is raised for rows that fit no process, by methods that need them in one."""
    return MemoryError(
        f"{method} needs all label rows in one process, and the {n_rows} that are left of all chunks do not fit; work "
        "on a sample, reduction=Sample(…), or by LWGP, HBGF, CgC or CrCIa, which take rows in pieces "
        "(GPUENS_MEMORY=… sets another limit)."
    )


def human_bytes(n: float) -> str:
    """Return a number of bytes as people write it: '1.6 GB'."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if n < 1000 or unit == "TB":
            break
        n /= 1000
    return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
