"""The files of a command: checks of its inputs and outputs, and functions that print and write its results."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gpuens import io
from gpuens.cli.process import print_error
from gpuens.io import atomic, outputs
from gpuens.io.content import input_kind
from gpuens.io.paths import WITH_NUMBERS, check_readable, file_kind
from gpuens.io.reading import read_column_file
from gpuens.labels.object_names import match_files, names_of_objects
from gpuens.runtime import checks, failures
from gpuens.runtime.checks import counted, human_bytes
from gpuens.runtime.record import Clock, date_and_time, peak_memory, surroundings


def check_inputs(*paths: str, kinds: tuple[str, ...] | None = None) -> None:
    """Raise an error if an input file is missing or unreadable; do so before slow modules are imported.

    Its ending must be one of ``kinds``. Without them, it is of any kind that `gpuens.io` reads.
    """
    for path in paths:
        kind = input_kind(path) if kinds is None else file_kind(path, kinds)
        check_readable(path, folder=kind == ".zarr")


def one_column(
    path: str,
    instead: str,
    beside: str,
    ids: Any,
    lacks: Sequence[str] = (),
    *,
    by_position: bool = False,
    partial: bool = False,
    **reading: Any,
) -> Any:
    """Read the single column of the label file ``path``, in the order of the objects in the other file ``beside``.

    ``ids`` are the names of the objects in ``beside``, or None. ``by_position`` and ``partial`` are those of
    `object_names.match_files`. ``lacks`` are the columns in --exclude and --id-column that ``beside`` lacks; an error
    is raised if ``path`` lacks them too. If ``path`` has several columns, an error is raised with the advice
    ``instead``. With ``partial``, objects that ``path`` lacks have a missing label.
    """
    read = read_column_file(path, beside=True, **{"results": True, **reading})
    if nowhere := [column for column in read.lacks if column in lacks]:
        raise ValueError(f"--exclude, --id-column: neither file has a column {nowhere[0]!r}; correct the name.")
    if len(read.columns) != 1:
        raise ValueError(f"path {path!r} has {len(read.columns)} columns where one is needed; {instead}.")
    column = without_index(next(iter(read.columns.values())))
    places = None if by_position else match_files(ids, beside, read.ids, path, partial=partial)
    if places is not None and (lacking := int((places < 0).sum())):
        checks.warn(
            f"path {path!r} has {len(places) - lacking:,} of the {len(places):,} objects of {beside!r}, and only these "
            "are compared."
        )
        column = _in_places(column, places)
    elif places is not None:
        column = column.iloc[places] if hasattr(column, "iloc") else column[places]
    if not hasattr(column, "iloc"):
        return column
    named = names_of_objects(ids) is not None and len(ids) == len(column)
    return column.set_axis(ids) if named else without_index(column)


def _in_places(column: Any, places: Any) -> Any:
    """Return the labels of a column at some places as a Series, with missing labels for the place -1."""
    import pandas as pd

    series = pd.Series(column)
    if series.dtype.kind in "iu":  # NumPy's integers have no missing value
        series = series.astype("UInt64" if series.dtype.kind == "u" else "Int64")
    return series.iloc[places].mask(places < 0)


def without_index(column: Any) -> Any:
    """Return an array unchanged; return a Series without its row names, because objects are matched by their ids."""
    return column.reset_index(drop=True) if hasattr(column, "iloc") else column


def check_output(output: str, *sources: str) -> None:
    """Raise an error, before any work, if the output file or its record cannot be written."""
    io.packages_for(outputs.check_output(output, io.OUTPUTS, inputs=sources))
    outputs.check_record(atomic.record_of(output))


def check_beside(option: str, output: str) -> None:
    """Raise an error, before any work, if the output file cannot hold the numbers that ``option`` adds to it."""
    if not output.lower().endswith(WITH_NUMBERS):
        raise ValueError(
            f"{option} is written beside the labels, which {output!r} cannot hold; name a csv, tsv, parquet or npz "
            "file."
        )


def check_page(path: str, *sources: str) -> None:
    """Raise an error, before any work, if a report page cannot be drawn or cannot be written to ``path``."""
    from gpuens import report

    report.refuse_missing()
    outputs.check_output(path, (".html",), inputs=sources)


def check_model(path: str, *inputs: str) -> None:
    """Raise an error if a model file cannot be written to ``path``, or would replace another file of the command."""
    outputs.check_output(path, (".npz",), inputs=inputs)


def write_page(path: str, draw: Callable[[], bytes], *, print_path: bool = False) -> None:
    """Draw a page by ``draw`` and write it to ``path``; with ``print_path``, print the path.

    Results in the buffer of stdout are printed before the page is drawn, because drawing may fail.
    """
    sys.stdout.flush()
    with failures.stage("report", "drawing the report"), atomic.replacing(path) as file:
        file.write(draw())
    if print_path:
        print(f"written: {path}")


@contextmanager
def labels_kept(output: str) -> Iterator[None]:
    """If the block fails, print that the output file with the labels and its record are already written."""
    try:
        yield
    except BaseException:
        print_error(f"{output} and {atomic.record_of(output)} are written; only a later step failed.")
        raise


def facts(args: argparse.Namespace, clock: Clock, **results: Any) -> dict[str, Any]:
    """Return the contents of a record: the command, date, versions, the ``results``, warnings, time and memory."""
    return {
        "command": args.argv,
        "date": date_and_time(),
        **surroundings(),
        **results,
        "warnings": list(args.warned),
        **clock.spent(),
    }


def write_recorded(
    args: argparse.Namespace, clock: Clock, labels: Any, writing: dict[str, Any], /, **entries: Any
) -> None:
    """Write labels to ``args.output``, with further arguments of `io.write_labels`, and the record with ``entries``."""
    with atomic.recorded(args.output) as record:
        with clock.phase("write", f"writing {args.output}"):
            io.write_labels(args.output, labels, **writing)
        record |= facts(args, clock, output=args.output, **entries)


def print_written(clock: Clock, output: str, where: str = "") -> None:
    spent = clock.seconds_so_far()
    peak = peak_memory()
    phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in spent.items() if name != "total")
    print(f"written: {output}{where}, and {os.path.basename(atomic.record_of(output))}")
    print(f"seconds: {spent['total']:.1f} ({phases})" + (f"; peak memory {human_bytes(peak)}" if peak else ""))


def aligned(lines: list[list[str]]) -> str:
    """Return lines of cells as a text table; the first column is aligned left, and all further columns right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = []
    for first, *rest in lines:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        texts.append("  ".join(cells).rstrip())
    return "\n".join(texts)


def clusters_of(sizes: Sequence[int], things: str = "object") -> str:
    """Return the number of clusters and the sizes of the first ones, in the order of their numbers, as a text.

    >>> clusters_of([1200, 1]), clusters_of([1])
    ('2 clusters, of 1,200, 1 objects', '1 cluster, of 1 object')
    """
    plural = "s" * (list(sizes) != [1])
    return f"{counted(len(sizes), 'cluster')}, of {first_numbers(sizes)} {things}{plural}"


def clusterings_of(ensemble: Any) -> str:
    """Return the numbers of base clusterings and of their clusters as a text."""
    return f"{counted(ensemble.n_clusterings, 'clustering')} with {counted(ensemble.n_clusters, 'cluster')}"


def first_numbers(values: Sequence[float]) -> str:
    """Return the first eight of some numbers as a text."""
    return ", ".join(f"{value:,.10g}" for value in values[:8]) + " …" * (len(values) > 8)


def cell_of(value: Any) -> str:
    """Return a value as a text for a table: None as "-", a float with three decimals."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:z.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def first_names(names: Sequence[Any]) -> str:
    """Return the first twenty of some names as a text."""
    return ", ".join(map(str, names[:20])) + " …" * (len(names) > 20)
