"""Manifests, which list the jobs of a batch in YAML, JSON, JSON lines or CSV; all formats have the same schema."""

import csv
import difflib
import io
import itertools
import json
import os
import re
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from gpuens.batch import limits, places
from gpuens.batch.job import READING, Job, class_of, is_file
from gpuens.cli.chunks import CHUNK_ROWS, IN_ONE_PIECE, ORIENTATION, STARTED, scheduler_of
from gpuens.cli.graph_settings import EXCLUDED, OF_METHODS, GraphSettings, options_with_neighbors
from gpuens.io import paths
from gpuens.io.outputs import kind_like
from gpuens.io.paths import WITH_NUMBERS
from gpuens.report import refuse_missing
from gpuens.runtime import checks, installing
from gpuens.runtime.defaults import METHOD
from gpuens.runtime.device import DEVICES
from gpuens.runtime.options import options

Manifest = Mapping[str, Any] | list[Any] | str | os.PathLike[str]

KINDS = (".yaml", ".yml", ".json", ".jsonl", ".csv")
ERRORS_COMPARED = 100  # maximum number of errors in a manifest that are compared to find the clearest error
TO_PARAMETERS = {"seed": "random_state", "reduce": "reduction", "device": "device"}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of manifests.

    >>> sorted(schema()["properties"])
    ['defaults', 'jobs', 'matrix']
    """
    return json.loads((resources.files("gpuens.batch") / "schema.json").read_text())


def load(manifest: Manifest, *, report: bool = False, device: str = "auto") -> tuple[list[Job], str]:
    """Return the jobs of a manifest, and the folder or URI that its paths are relative to.

    Parameters
    ----------
    manifest : str, path, mapping or list
        A .yaml, .json, .jsonl or .csv file or URI, "-" for JSON lines on stdin, or the contents of such a file.
    report : bool
        Write a page for each job that does not set this itself.
    device : {"auto", "cpu", "cuda"}
        The device of jobs that name none.

    Raises
    ------
    OSError, ValueError, TypeError, ImportError
        For unreadable files, manifests that violate the schema, and methods or parameters that are invalid for any
        data, each with its place in the manifest.

    Examples
    --------
    >>> jobs, _ = load({"jobs": [{"input": "a.npy", "method": ["eac", "lwea"], "n_clusters": 3}]})
    >>> [job.method for job in jobs]
    ['eac', 'lwea']
    """
    contents, base = _read_manifest(manifest)
    if isinstance(contents, list):
        contents = {"jobs": contents}
    limits.refuse_many_jobs(contents)
    _validate(contents)
    checks.check_choice(device, "device", DEVICES)
    jobs: list[Job] = []
    entries = [(f"jobs[{i}]", entry) for i, entry in enumerate(contents.get("jobs", []))]
    entries += [("matrix", entry) for entry in _product(contents.get("matrix"))]
    settings = {"report": report, **({} if device == "auto" else {"device": device})}
    for place, entry in entries:
        with _errors_at(place):
            jobs += _jobs_of(_fill({**settings, **contents.get("defaults", {})}, entry), base)
        limits.refuse_more(len(jobs))
    if not jobs:
        raise ValueError("the manifest has no jobs; add at least one.")
    _refuse_equal_ids(jobs)
    return jobs, base


# --- files ------------------------------------------------------------------------------------------------------------


def _read_manifest(manifest: Manifest) -> tuple[Any, str]:
    """Read a manifest; return its contents and the folder of its file, which is "" for the current folder."""
    if isinstance(manifest, (Mapping, list)):
        with _parsing("in memory"):
            limits.refuse_vast(manifest, limits.parts_of_value)
            return _to_json(manifest), ""
    if not isinstance(manifest, (str, os.PathLike)):
        raise TypeError(f"manifest must be a file, a mapping or a list of jobs, not {checks.shown(manifest)}.")
    if manifest == "-":
        with _parsing(manifest):
            contents = _lines(limits.refuse_long(sys.stdin.read(limits.MOST_BYTES + 1)))
            limits.refuse_vast(contents, limits.parts_of_value)
        return contents, ""
    kind = paths.file_kind(manifest, KINDS)
    try:
        text = _text(os.fspath(manifest))
    except (FileNotFoundError, IsADirectoryError) as error:  # a ValueError, because the command names a wrong file
        raise ValueError(str(error)) from error
    with _parsing(manifest), limits.without_collections():
        parsers: dict[str, Callable[[str], Any]] = {".csv": _table, ".jsonl": _lines, ".json": _json}
        contents = parsers.get(kind, _yaml)(text)
        limits.refuse_vast(contents, limits.parts_of_value)
        contents = _to_json(contents)
    return contents, os.path.dirname(os.fspath(manifest))


def _text(manifest: str) -> str:
    if not places.is_uri(manifest):
        paths.check_readable(manifest)
    with places.at_hand(manifest, "") as path, _parsing(manifest), open(path, encoding="utf-8-sig") as file:
        return limits.refuse_long(file.read(limits.MOST_BYTES + 1))


def _to_json(contents: Any) -> Any:
    """Convert the contents of a manifest to types that JSON has; keys and dates, for example, become texts."""
    return json.loads(json.dumps(contents, default=str))


@contextmanager
def _parsing(manifest: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise
    except limits.TooMuch as error:
        raise ValueError(f"manifest {os.fspath(manifest)!r} {error}") from error
    except Exception as error:  # the parser of each format raises its own types of errors
        if isinstance(error, OSError):
            raise
        raise ValueError(
            f"manifest {os.fspath(manifest)!r} cannot be read ({checks.gist(error)}); correct it."
        ) from error


def _yaml(text: str) -> Any:
    limits.refuse_long(text, limits.MOST_BYTES_OF_YAML, "divide it, or write JSON lines")
    with _needed():
        import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """A safe YAML loader that raises an error if a mapping contains the same key twice."""

    def mapping(loader: Any, node: Any) -> dict[str, Any]:
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value if not key.tag.endswith(":merge")]
        _refuse_twice(keys, f"line {node.start_mark.line + 1}: ")
        return yaml.constructor.SafeConstructor.construct_mapping(loader, node, deep=True)

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    loader = Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        limits.refuse_vast(root, limits.parts_of_node)  # this check must come before merge keys expand the aliases
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _refuse_twice(keys: list[Any], where: str = "") -> None:
    earlier = set()
    for key in keys:
        if isinstance(key, Hashable):  # the YAML loader raises an error for keys that are not hashable
            if key in earlier:
                raise ValueError(f"{where}the key {key!r} occurs twice.")
            earlier.add(key)


def _json(text: str) -> Any:
    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_twice([key for key, _ in pairs])
        return dict(pairs)

    return json.loads(text, object_pairs_hook=mapping)


def _lines(text: str) -> list[Any]:
    return [_json(line) for line in text.split("\n") if line.strip()]


def _table(text: str) -> list[Any]:
    """Read a CSV table and return one entry for each row.

    A column "parameters.NAME" holds the parameter NAME of a method. In a cell, ";" separates the items of a list.
    """
    fields = schema()["$defs"]["fields"]["properties"]
    rows = []
    reader = csv.DictReader(io.StringIO(text), strict=True)
    _refuse_twice(list(reader.fieldnames or []))
    for row in reader:
        if None in row or None in row.values():
            raise ValueError("a row has more or fewer fields than the first.")
        entry: dict[str, Any] = {}
        for name, value in row.items():
            if value.strip():
                is_text = name.startswith("parameters.") or fields.get(name, {}).get("type") == "string"
                entry[name] = value if is_text else _typed(value.strip(), fields.get(name, {}))
        rows.append(_nest_parameters(entry))
    return rows


def _typed(text: str, field: dict[str, Any]) -> Any:
    """Convert the text of a CSV cell to the type that the schema has for its field; other text is not converted."""
    kinds = str({name: value for name, value in field.items() if name != "description"})
    if (";" in text and "array" in kinds) or "#/$defs/names" in kinds or field.get("type") == "array":
        return [
            _typed(part.strip(), {"type": "integer"} if part.strip().isdecimal() else {}) for part in text.split(";")
        ]
    if field.get("type") == "boolean":
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(text.lower(), text)
    if text.isdecimal() and ("integer" in kinds or "#/$defs/size" in kinds):
        return int(text)
    return text


# --- jobs -------------------------------------------------------------------------------------------------------------


@contextmanager
def _needed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"manifests need {error.name}, which is not installed: {installing.command('batch')}."
        ) from error


def _validate(contents: Any) -> None:
    with _needed():
        import jsonschema

    error = jsonschema.exceptions.best_match(itertools.islice(_validator().iter_errors(contents), ERRORS_COMPARED))
    if error is not None:
        message = " ".join(str(error.message).split())
        message = f"{message if len(message) <= 300 else f'{message[:300]} …'}{_hint(error)}"
        where = f"{error.json_path.removeprefix('$').removeprefix('.')}: " if error.json_path != "$" else ""
        raise ValueError(f"manifest: {where}{message}; see gpuens batch --schema.")


def _hint(error: Any) -> str:
    """Return the known key that is nearest to an unknown key of a manifest, as a part of a sentence, or ""."""
    fields = list(schema()["$defs"]["fields"]["properties"])
    if error.validator == "additionalProperties":
        allowed = list(error.schema["properties"])
        unknown = next(key for key in error.instance if key not in allowed)
    elif "propertyNames" in error.absolute_schema_path:
        allowed = [name for name in fields if re.search(error.validator_value, name)]
        unknown = error.instance
    else:
        return ""
    similar = difflib.get_close_matches(unknown[:100], allowed, n=1)
    return f" (did you mean {similar[0]!r}?)" if similar else ""


@cache
def _validator() -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(schema())


def _product(matrix: dict[str, list[Any]] | None) -> Iterator[dict[str, Any]]:
    """Yield one entry for each combination of items from the lists of a matrix."""
    if matrix:
        for values in itertools.product(*matrix.values()):
            entry = _nest_parameters(dict(zip(matrix, values, strict=True)))
            _validate({"jobs": [entry]})
            yield entry


def _fill(defaults: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of a manifest in which missing fields and parameters have their defaults."""
    parameters = {**defaults.get("parameters", {}), **entry.get("parameters", {})}
    return {**defaults, **entry, **({"parameters": parameters} if parameters else {})}


def _nest_parameters(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of a manifest in which all fields "parameters.NAME" are moved to one field "parameters"."""
    parameters = {name.split(".", 1)[1]: value for name, value in entry.items() if name.startswith("parameters.")}
    fields = {name: value for name, value in entry.items() if not name.startswith("parameters.")}
    return {**fields, "parameters": {**fields.get("parameters", {}), **parameters}} if parameters else fields


def _jobs_of(entry: dict[str, Any], base: str) -> Iterator[Job]:
    """Yield the jobs of an entry: one job for each combination of a file, a method and a number of clusters."""
    if "input" not in entry:
        raise ValueError("input is needed: name a label file.")
    if "method" in entry and "methods" in entry:
        raise ValueError("method and methods are both given; leave one out.")
    methods = entry.get("methods", entry.get("method"))
    if "similarity" in entry or "partitioner" in entry:
        if methods is not None:
            raise ValueError("a method has its own similarity and partitioner; give the method, or the other two.")
        methods = "consensus"
    lists = {
        "input": list(map(paths.without_slash, places.matching(places.joined(entry["input"], base), base))),
        "method": _listed(methods or _default_method(entry)),
        "n_clusters": _listed(entry.get("n_clusters", "auto")),
    }
    if "features" in entry and is_file(entry["features"]):
        entry["features"] = places.joined(entry["features"], base)
    for values in itertools.product(*lists.values()):
        combination = dict(zip(lists, values, strict=True))
        beside = GraphSettings(**_neighbors_of(entry)).files(combination["input"])
        job = _job({**entry, **combination, **{name: places.joined(place, base) for name, place in beside.items()}})
        varied = [_short(name, combination[name]) for name, values_of in lists.items() if len(values_of) > 1]
        yield replace(job, id="-".join([entry["id"], *varied]) if "id" in entry else job.slug())


def _neighbors_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry that name the neighbours of the objects."""
    return {name: entry[name] for name in GraphSettings._fields if name in entry}


def _default_method(entry: dict[str, Any]) -> str:
    if not _neighbors_of(entry):
        return METHOD
    from gpuens.methods.spatial import METHOD as METHOD_OF_DOMAINS

    return METHOD_OF_DOMAINS


def _job(entry: dict[str, Any]) -> Job:
    """Make a job without an id from an entry, and check it."""
    neighbors = _neighbors_of(entry)
    if neighbors:
        GraphSettings(**neighbors).check(name for name in (*EXCLUDED, *OF_METHODS) if name in entry)
    kind = class_of(entry["method"])

    options_of_method = options_with_neighbors(entry["method"]) if neighbors else options(kind)
    parameters: dict[str, Any] = {}
    for name, value in entry.get("parameters", {}).items():
        if name not in options_of_method or name == "n_clusters":
            has = ", ".join(name for name in options_of_method if name != "n_clusters")
            raise ValueError(
                f"parameters: {name!r} is no parameter of method {entry['method']!r}; its parameters are {has}."
            )
        parameters[name] = options_of_method[name].read(value) if isinstance(value, str) else value
    for name in ("similarity", "partitioner"):
        if name in entry:
            parameters[name] = entry[name]
    for name, parameter in TO_PARAMETERS.items():
        if name in entry and parameter in options_of_method:
            parameters.setdefault(parameter, entry[name])
    if "seed" in entry:
        checks.make_generator(entry["seed"])
    scheduler = scheduler_of(
        entry["input"],
        entry.get("scheduler"),
        in_one_piece=bool(neighbors) or any(entry.get(name) for name in ORIENTATION),
    )
    _refuse_options_of_chunks(entry, scheduler)
    evidence = entry.get("evidence", False)
    chunks = None
    if scheduler is not None:
        chunks = scheduler, entry.get("workers"), int(entry.get("chunk_rows", CHUNK_ROWS))
    job = Job(
        id="",
        input=entry["input"],
        method=entry["method"],
        n_clusters=None if entry["n_clusters"] == "auto" else entry["n_clusters"],
        parameters=parameters,
        reading={name: entry[name] for name in READING if name in entry},
        features=entry.get("features"),
        neighbors=neighbors,
        chunks=chunks,
        format=entry.get("format") or kind_like(entry["input"], in_chunks=chunks is not None, numbers=evidence)[1:],
        report=entry["report"],
        evidence=evidence,
    )
    _check(job)
    return job


def _refuse_options_of_chunks(entry: dict[str, Any], scheduler: str | None) -> None:
    """Raise an error if an entry has options that would be ignored.

    Some options apply only to files that are read in chunks, others only to files that are read in one piece.
    """
    ignored = (*IN_ONE_PIECE, "evidence") if scheduler is not None else ("chunk_rows",)
    for name in ignored:
        if name in entry:
            how, fields = ("in chunks", "it") if scheduler is None else ("in one piece", "it or scheduler")
            raise ValueError(f"{name} is for files that are read {how}; leave {fields} out.")
    if "workers" in entry and scheduler not in STARTED:
        raise ValueError("workers is for a cluster of this machine: add scheduler: local (or cuda), or leave it out.")
    if scheduler not in (None, "threads", *STARTED) and ":" not in str(scheduler):
        raise ValueError(f"scheduler must be threads, local, cuda or an address, not {checks.shown(scheduler)}.")


def _check(job: Job) -> None:
    """Raise an error if a job is invalid whatever its data are."""

    if job.chunks is not None:
        paths.file_kind(job.input, paths.IN_CHUNKS)
    paths.packages_for(f".{job.format}")
    if job.evidence and f".{job.format}" not in WITH_NUMBERS:
        raise ValueError(
            f"evidence is written beside the labels, which format {job.format!r} cannot hold; choose csv, tsv, parquet "
            "or npz."
        )
    job.estimator()
    if job.report:
        refuse_missing()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _short(name: str, value: Any) -> str:
    if name == "n_clusters":
        return value if value == "auto" else f"k{value}"
    return os.path.basename(value).split(".")[0] if name == "input" else str(value)


def _refuse_equal_ids(jobs: list[Job]) -> None:
    job_of: dict[str, Job] = {}
    for job in jobs:
        # ids are compared in small letters, because on some systems a.json and A.json are the same file
        namesake = job_of.setdefault(job.id.lower(), job)
        if namesake is not job:
            raise ValueError(
                f"two jobs, of inputs {namesake.input!r} and {job.input!r}, have the id {job.id!r}; give each its "
                "own id."
                if namesake.facts() != job.facts()
                else f"job {job.id!r} occurs twice; leave one out."
            )


@contextmanager
def _errors_at(place: str) -> Iterator[None]:
    """Put ``place``, which names a place in the manifest, at the beginning of error messages from this block."""
    try:
        yield
    except (ValueError, TypeError, ImportError) as error:
        raise type(error)(f"{place}: {' '.join(str(error).split())}") from error
