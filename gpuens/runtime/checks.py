"""Argument checks shared by several modules, warnings, and the formatting of values in sentences.

A refusal is one sentence: which argument, what was found, what to do instead. A wrong type is a ``TypeError``, a wrong
value a ``ValueError``. A sentence that serves one module stands in that module.
"""

import math
import numbers
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from gpuens.runtime import device, host

MISSING = -1  # a missing label, in arguments and results
LARGEST = 2**63 - 1  # largest int64
FEW_WORDS = 3  # number of words that the refusal of another word names if there is a list of all
ADDRESSES_BYTES = 1_000_000_000  # measured address space that libraries reserve before any data is read
ADDRESSES_OF_A_THREAD_BYTES = 100_000_000

_NO_NUMBERS = (bool, np.bool_, np.timedelta64)  # refused types; Python counts bool as a number, NumPy timedelta64
_BETWEEN = {"gpuens", "dask", "distributed", "sklearn", "importlib"}  # the caller's line is outside


# --- labels and features ----------------------------------------------------------------------------------------------


def check_label_shape(shape: tuple[int, ...], *, members: bool = False) -> None:
    """Refuse label matrices that are not (n_objects, n_clusterings) with at least one of each.

    ``members``: labels are lists of lists, which may be the members of clusters.
    """
    if len(shape) == 3 and not members:
        first = shape[0] <= shape[2]
        how = f"reshape({shape[0]}, -1).T" if first else f"reshape(-1, {shape[2]})"
        height, width = shape[1:] if first else shape[:2]
        raise ValueError(
            f"labels must be 2-D, (n_objects, n_clusterings), but have shape {shape}; if this is a stack of "
            f"{min(shape[0], shape[2])} maps, each a clustering of the same pixels, pass labels.{how}, or, for pixels "
            f"with neighbours in a file, grid={height}x{width} (--grid)."
        )
    if len(shape) != 2:
        instead = (
            "if each list is a cluster, pass its members as a set"
            if members
            else "for a single clustering pass labels.reshape(-1, 1)"
        )
        raise ValueError(f"labels must be 2-D, (n_objects, n_clusterings), but have shape {shape}; {instead}.")
    n_objects, n_clusterings = shape
    for n, unit in ((n_objects, "sample(s)"), (n_clusterings, "feature(s)")):
        if n == 0:
            raise ValueError(
                f"labels are empty: 0 {unit} (shape={shape}) while a minimum of 1 is required; rows are objects and "
                "columns are base clusterings."
            )


def check_label_vector(shape: tuple[int, ...], kind: str, name: object) -> None:
    """Refuse labels (of type ``kind``) that are not a non-empty vector."""
    if len(shape) == 0:
        raise TypeError(f"{name} must be a list, array or Series of labels, one per object, not {kind}.")
    if len(shape) != 1:
        raise ValueError(f"{name} must be 1-D, one label per object, but has shape {shape}; pass one column of it.")
    if shape[0] == 0:
        raise ValueError(f"{name} is empty; pass the labels of at least one object.")


def refuse_sparse(labels: Any) -> None:
    """Refuse sparse matrices."""
    if hasattr(labels, "tocsr"):
        raise TypeError(
            "labels are a sparse matrix, but Sparse data was passed where dense cluster labels are needed; pass "
            "labels.toarray()."
        )


def check_names(names: Any, n_clusterings: int) -> list[Any]:
    """Return the names as a list, or refuse them unless there is one for each clustering."""
    try:
        names = names.to_pylist() if hasattr(names, "to_pylist") else names  # Arrow's elements are no texts
        name_list = None if isinstance(names, (str, bytes)) else list(names)
    except TypeError:  # 0-D arrays claim to be iterable
        name_list = None
    if name_list is None:
        raise TypeError(f"names must be a list with one name for each clustering, not {shown(names)}.")
    if len(name_list) != n_clusterings:
        raise ValueError(f"names must be one for each clustering, but {len(name_list)} were given for {n_clusterings}.")
    return name_list


def check_clusterings(n_clusters: Iterable[int], names: list[Any], n_objects: int) -> None:
    """Refuse clusterings without labels; warn about clusterings with a single cluster."""
    n_clusters = list(n_clusters)
    for name, k in zip(names, n_clusters, strict=True):
        if k == 0:
            raise ValueError(f"labels of clustering {name!r} are all missing; leave that clustering out.")
    constant = [str(name) for name, k in zip(names, n_clusters, strict=True) if k == 1]
    if constant and n_objects > 1:
        warn(
            f"constant clusterings carry no information: {', '.join(constant[:5])}{' …' if len(constant) > 5 else ''} "
            f"({len(constant)} of {len(names)}) put every object into one cluster."
        )


def refuse_unlabelled(unlabelled: np.ndarray, start: int = 0) -> None:
    """Refuse objects without a label in any clustering: ``unlabelled`` is their mask, from object ``start`` on."""
    if unlabelled.any():
        raise ValueError(
            f"labels: {int(unlabelled.sum())} object(s) have no label in any clustering, the first is object "
            f"{start + int(unlabelled.argmax())}; leave them out (Ensemble.of_labelled in Python, drop_unlabelled=True "
            "where a file is read, gpuens run --drop-unlabelled)."
        )


def check_feature_shape(shape: tuple[int, ...], name: str = "X") -> None:
    """Refuse features that are not (n_objects, n_features) with at least one of each."""
    if len(shape) != 2:
        raise ValueError(
            f"{name} must be 2-D, (n_objects, n_features), not of shape {shape}; for a single feature pass "
            f"{name}.reshape(-1, 1)."
        )
    if 0 in shape:
        raise ValueError(f"{name} must not be empty: {shape[0]} object(s) and {shape[1]} feature(s) were found.")


# --- number of clusters, rows and memory ------------------------------------------------------------------------------


def check_n_clusters(value: Any, n_distinct: int, *, reduced: bool = False) -> int:
    """Return the requested number of clusters, or refuse more than ``n_distinct`` distinct label rows.

    ``reduced``: the rows are those of a reduction.
    """
    if value is None:
        raise ValueError("n_clusters is not given, and this method has no rule to choose it; pass n_clusters=….")
    k = check_integer(value, "n_clusters", minimum=1)
    if k > n_distinct and reduced:
        raise ValueError(
            f"n_clusters={k} is more than the {n_distinct} row(s) that the reduction has left; ask for fewer clusters "
            "or for a reduction that keeps more (a larger sample, a smaller tau)."
        )
    if k > n_distinct:
        raise ValueError(
            f"n_clusters={k} is more than the {n_distinct} distinct label row(s): objects with equal labels cannot be "
            "separated, so ask for fewer clusters or add clusterings."
        )
    return k


def refuse_more_clusters(n_clusters: int, n_objects: float) -> None:
    """Refuse more clusters than objects with features."""
    if n_clusters > n_objects:
        raise ValueError(f"n_clusters={n_clusters} is more than the {n_objects} object(s) of X; ask for fewer.")


def check_positive(values: Any, n: int, name: str = "weights", of: str = "object") -> np.ndarray:
    """Return numbers (n,) as an array of integers or floats; refuse other arrays, and numbers that are not positive."""
    must = f"{name} must be {n} numbers, one per {of}"
    array = host_array(values, must)
    if array.shape != (n,) or array.dtype.kind not in "iuf":
        raise ValueError(f"{must}, but have shape {array.shape} and dtype {array.dtype}.")
    if not np.isfinite(array).all() or (array <= 0).any():
        raise ValueError(f"{name} must be positive and finite.")
    return array


def check_weights(values: Any, n: int, name: str = "weights", of: str = "object") -> np.ndarray | None:
    """Return the weights (n,), positive and finite, as int64 or float64; None stays None."""
    if values is None:
        return None
    return check_sum(check_positive(values, n, name, of), name)


def check_sum(weights: np.ndarray, name: str) -> np.ndarray:
    """Return positive weights as int64 or float64; refuse weights whose sum an array cannot hold."""
    is_integer = weights.dtype.kind != "f"
    if not (
        float(weights.sum(dtype=np.float64)) <= 2.0**62 if is_integer else float(weights.max()) * len(weights) <= 1e300
    ):
        raise ValueError(
            f"{name} add up to more than an array can hold, with {weights.max():g} among them; scale them."
        )
    return weights.astype(np.int64 if is_integer else np.float64)


def check_total(total: int, n_clusterings: int, unit: int = 1, subject: str | None = None) -> None:
    """Refuse weights of objects whose sum, ``total`` times their unit, is too large for exact counting.

    float64 must hold the total, int64 the total in all clusterings together, and int64 the sum in the given unit.
    """
    largest = min(2**53 * unit, 2**62 // n_clusterings * unit, LARGEST)
    refuse_total(total * unit, largest, subject or f"a consensus of {n_clusterings} clusterings")


def refuse_total(total: float, largest: float, subject: str) -> None:
    """Refuse weights of objects whose sum is above the largest sum that ``subject`` counts exactly."""
    if total > largest:
        raise ValueError(
            f"sample_weight (or counts of Rows) adds up to {total:.5g}, but {subject} counts at most {largest:.5g} "
            "exactly; divide the weights by a common unit (for example, kilobases in place of bases) and round them."
        )


def check_one_per_row(values: np.ndarray, n: int, name: str) -> None:
    """Refuse arrays that are not (n,)."""
    if values.ndim != 1 or len(values) != n:
        raise ValueError(f"{name} must hold one value for each of the {n} row(s), but have shape {values.shape}.")


def check_indices(indices: Any, n_objects: int, name: str) -> np.ndarray:
    """Return object indices as int64 (None means all objects), or refuse indices out of range."""
    if indices is None:
        return np.arange(n_objects)
    if isinstance(indices, slice):
        try:
            return np.arange(n_objects)[indices]
        except (TypeError, ValueError):  # slice("a"), steps of 0
            raise ValueError(f"{name} must be a slice of whole numbers, not {shown(indices)}.") from None
    array = host_array(indices, f"{name} must be a 1-D array of object indices")
    if array.dtype == bool and array.shape == (n_objects,):
        return np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be None, a slice, a mask over objects or a 1-D array of object indices.")
    if array.size and (array.min() < -n_objects or array.max() >= n_objects):
        raise ValueError(f"{name} contains an index outside 0 … {n_objects - 1}.")
    array = array.astype(np.int64)
    return np.where(array < 0, array + n_objects, array)


def check_block(
    rows: Any, cols: Any, n_objects: int, budget: int, subject: str, *, bytes_per_col: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and column indices of a dense float64 block, or refuse a block above the budget (bytes)."""
    rows, cols = check_indices(rows, n_objects, "rows"), check_indices(cols, n_objects, "cols")
    check_memory(
        (8 * len(rows) + bytes_per_col) * len(cols),
        budget,
        f"the {len(rows)} × {len(cols)} {subject} block",
        "take a block of fewer rows or cols, or an estimator, none of which needs the matrix",
    )
    return rows, cols


# bytes that `check_memory` was asked for in the innermost `memory_asked` block, None outside
_requests: ContextVar[list[int] | None] = ContextVar("asked", default=None)


@contextmanager
def memory_asked() -> Iterator[list[int]]:
    """In the with block, append the bytes of each call of `check_memory` to the yielded list, and refuse nothing."""
    requests: list[int] = []
    token = _requests.set(requests)
    try:
        yield requests
    finally:
        _requests.reset(token)


def check_memory(needed: int, budget: int, subject: str, instead: str) -> None:
    """Refuse work that needs more bytes than the budget, before it starts; see `memory_asked`."""
    requests = _requests.get()
    if requests is not None:
        requests.append(needed)
    elif needed > budget:
        raise MemoryError(
            f"{subject} needs {human_bytes(needed)} and {human_bytes(budget)} may be used; {instead} "
            "(GPUENS_MEMORY=… sets another limit)."
        )


def check_addresses() -> None:
    """Refuse an address space (`ulimit -v`) that is too small for the libraries, before they are loaded.

    Without this check OpenBLAS tries for ever to get memory, or OpenBLAS or OpenMP ends the process.
    """
    limit = host.address_space()
    if limit is None:
        return
    n_threads = device.n_threads()
    needed = ADDRESSES_BYTES + n_threads * ADDRESSES_OF_A_THREAD_BYTES
    if limit < needed:
        raise MemoryError(
            f"this process may have {human_bytes(limit)} of addresses (ulimit -v), but needs {human_bytes(needed)} for "
            f"{n_threads} threads before any data; raise that limit, or limit memory by GPUENS_MEMORY instead."
        )


# --- single values ----------------------------------------------------------------------------------------------------


def check_integer(value: Any, name: str, *, minimum: int, maximum: int = LARGEST) -> int:
    """Return ``value`` as an int within its bounds, or refuse it."""
    if isinstance(value, _NO_NUMBERS) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, not {shown(value)}.")
    number = int(value)
    if not minimum <= number <= maximum:
        limits = f"at least {minimum}" if number < minimum and maximum >= LARGEST else f"from {minimum} to {maximum}"
        raise ValueError(f"{name} must be {limits}, but is {shown(number)}.")
    return number


def check_number(value: Any, name: str, kind: str = "a number") -> float:
    """Return a real number as a float (infinite beyond the largest float), or refuse it."""
    if isinstance(value, _NO_NUMBERS) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {kind}, not {shown(value)}.")
    try:
        return float(value)
    except OverflowError:  # Python's int and Fraction raise it
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def check_real(value: Any, name: str, *, above: float = -np.inf, at_most: float = np.inf) -> float:
    """Return ``value`` as a finite float in (above, at_most], or refuse it."""
    number = check_number(value, name)
    if not (math.isfinite(number) and above < number <= at_most):
        limit = "finite" if at_most == np.inf else f"at most {at_most:g}"
        raise ValueError(
            f"{name} must be {'' if above == -np.inf else f'above {above:g} and '}{limit}, but is {number}."
        )
    return number


def check_between(value: Any, name: str, low: float, high: float) -> float:
    """Return ``value`` as a float in [low, high], or refuse it."""
    number = check_number(value, name)
    if not low <= number <= high:
        raise ValueError(f"{name} must be from {low:g} to {high:g}, but is {number}.")
    return number


def check_fraction(value: Any, name: str, default: str) -> float | None:
    """Return ``value`` as a float in [0, 1], or None for the default; or refuse it."""
    if value is None:
        return None
    number = check_number(value, name, f"a number from 0 to 1, or None for {default}")
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must be from 0 to 1, or None for {default}, but is {number}.")
    return number


def check_choice(value: Any, name: str, allowed: Iterable[str], *, listed_by: str | None = None) -> str:
    """Return ``value`` if it is one of ``allowed``, or refuse it with the list.

    If ``listed_by`` lists the allowed words, the refusal has only a few of them, the nearest ones.
    """
    allowed = list(allowed)
    if not isinstance(value, str) or value not in allowed:
        kind = ValueError if isinstance(value, str) else TypeError
        nearest = next(iter(_nearest(value, allowed, 1, 0.75)), None)
        hint = f" (did you mean {nearest!r}?)" if nearest else ""
        shorter = listed_by is not None and len(allowed) > FEW_WORDS
        words = ", ".join(map(repr, _nearest(value, allowed, FEW_WORDS, 0.0) if shorter else allowed))
        choice = f"the names that {listed_by} lists, such as {words}" if shorter else words
        raise kind(f"{name} must be one of {choice}, not {shown(value)}{hint}.")
    return value


def _nearest(value: Any, allowed: list[str], n: int, cutoff: float) -> list[str]:
    """Return at most n allowed words, the closest to a text with capitals, underscores or typing errors."""
    from difflib import get_close_matches

    text = value[:100].lower().replace("_", "-") if isinstance(value, str) else ""
    return get_close_matches(text, allowed, n=n, cutoff=cutoff)


def check_runs(n_init: Any, max_iter: Any = 1) -> None:
    """Refuse a number of starts or iterations below 1, or so large that a run would seem to hang."""
    check_integer(n_init, "n_init", minimum=1, maximum=10_000)
    check_integer(max_iter, "max_iter", minimum=1, maximum=1_000_000)


def make_generator(random_state: Any) -> np.random.Generator:
    """Return a NumPy Generator from a seed, a Generator or a RandomState, or refuse it."""
    kinds = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)
    if random_state is None or isinstance(random_state, kinds):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.RandomState):  # as in scikit-learn, each call draws a seed
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    # NumPy recommends seeds of 128 bits
    return np.random.default_rng(check_integer(random_state, "random_state", minimum=0, maximum=2**128 - 1))


def host_array(values: Any, must: str) -> np.ndarray:
    """Return an array in host memory, or refuse ragged lists; ``must`` states the requirement of an argument."""
    device.check_readable(values, must.split(" must")[0])
    try:
        return device.to_host(values)
    except ValueError as error:
        raise ValueError(f"{must}, not lists of different lengths.") from error


# --- warnings ---------------------------------------------------------------------------------------------------------


# sentences of `warn` in the innermost `recorded` block, None outside
_recorded: ContextVar[dict[str, None] | None] = ContextVar("recorded", default=None)


def warn(sentence: str) -> None:
    """Warn, and show the line outside this package that made the call."""
    if (sentences := _recorded.get()) is not None:
        sentences[sentence] = None
        return
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "")
    warnings.warn_explicit(sentence, UserWarning, frame.f_code.co_filename, frame.f_lineno, module, registry)


@contextmanager
def recorded() -> Iterator[dict[str, None]]:
    """Record the sentences of `warn` in a block, each once, instead of showing them.

    Those of other threads are not recorded, which `warnings.catch_warnings` would do, as its filters are the process's.
    """
    sentences: dict[str, None] = {}
    token = _recorded.set(sentences)
    try:
        yield sentences
    finally:
        _recorded.reset(token)


def warn_of_fewer(n_found: int, n_clusters: int) -> None:
    """Warn about fewer clusters than requested."""
    if n_found < n_clusters:
        warn(
            f"found only {n_found} of {n_clusters} clusters: no object is in the others, most often as the ensemble "
            "does not distinguish more groups."
        )


LINE = 120  # characters in a line of a repr

# --- values as text ---------------------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """Return a short text of a value, on one line."""
    if isinstance(value, int) and abs(value) >= 2**128:  # Python refuses to write 5,000 digits
        return f"a {'negative ' * (value < 0)}whole number of about {1 + int(math.log10(abs(value)))} digits"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # the caller's repr may be broken
        text = ""
    if not text:
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:75]} …"


def listed(names: Iterable[Any]) -> str:
    """Return the first ten names as a readable list."""
    names = list(names)
    return (", ".join(map(repr, names[:10])) or "none") + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def summary(thing: Any, answer: str, **facts: str) -> str:
    """Return the repr of a result: its answer on the first line, then a few facts, each cut to a line."""
    lines = [f"{type(thing).__name__}: {answer}"]
    lines += [f"  {name.replace('_', ' ')}: {fact}" for name, fact in facts.items() if fact]
    return "\n".join(line if len(line) <= LINE else f"{line[: LINE - 2]} …" for line in lines)


def counted(n: int, things: str) -> str:
    """Return a number and its noun in the singular or plural, such as "1 object" or "2,000 objects"."""
    return f"{n:,} {things}{'' if n == 1 else 's'}"


def gist(error: Exception) -> str:
    """Return the message of an error as part of a sentence."""
    text = " ".join(str(error).split()).rstrip(".!") or "nothing more is known"
    return f"{type(error).__name__}: {re.sub('[.!?] ', '; ', text)[:300]}"


def human_bytes(n: float) -> str:
    """Return a number of bytes as text, such as '1.6 GB'."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if n < 1000 or unit == "TB":
            break
        n /= 1000
    return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:,.1f} {unit}"
