"""The settings and the options for work in chunks, which commands that can use Dask share."""

import argparse
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from gpuens.cli.arguments import option_of
from gpuens.io.paths import is_zarr
from gpuens.runtime.defaults import FORMS

CHUNK_ROWS = 1_000_000  # default number of objects in a chunk
# reading options that are not available if the file is read in chunks
ORIENTATION = ("wide", "transpose")
OF_FILES = ("key", "id_column", "sep", "header", "no_missing", "share_column")
IN_ONE_PIECE = (*OF_FILES, "drop_unlabelled", *ORIENTATION, *FORMS)
STARTED = ("local", "cuda")  # schedulers that start workers on this machine


class ChunkSettings(NamedTuple):
    """The settings of work on labels or features that are read in chunks."""

    scheduler: str  # "threads" for threads of this process, "local", "cuda", or the address of a scheduler
    workers: int | None = None
    rows: int = CHUNK_ROWS

    def connected(self) -> AbstractContextManager[Any]:
        """Return a context that connects to the scheduler, or starts it, and yields the client.

        For scheduler "threads", the context yields None.
        """
        from gpuens.distributed import connected

        return connected(None if self.scheduler == "threads" else self.scheduler, self.workers)

    def placed(self, chunks: Any) -> Any:
        """Move the chunks of an array of labels to the GPUs if the scheduler is "cuda"; return the labels in chunks."""
        from gpuens.distributed import on_gpus

        return on_gpus(chunks) if self.scheduler == "cuda" and not hasattr(chunks, "columns") else chunks


def scheduler_of(path: str, scheduler: str | None, *, in_one_piece: bool = False) -> str | None:
    """Return the scheduler for reading a file in chunks, or None if the file is read in one piece.

    Without the ``scheduler`` of a user, a zarr array is read in chunks by threads, unless options of its reading need
    it ``in_one_piece``.
    """
    return "threads" if scheduler is None and is_zarr(path) and not in_one_piece else scheduler


def add_chunks(parser: argparse.ArgumentParser) -> None:
    """Add the options that set where chunks are processed, and how many objects a chunk has."""
    parser.add_argument(
        "--scheduler",
        metavar="WHERE",
        help="work in chunks (of npy, zarr or parquet): on a Dask cluster (its address), local (--workers processes), "
        "cuda (all GPUs of this machine) or threads (of this process)",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes of --scheduler local")
    parser.add_argument("--chunk-rows", type=int, metavar="N", help=f"objects per chunk ({CHUNK_ROWS:,})")


def chunks_of(args: argparse.Namespace, path: str, *options: str) -> ChunkSettings | None:
    """Return the settings for reading a file in chunks, or None to read the file in one piece.

    Raise an error for options that apply only to reading in chunks if the file is read in one piece, and the reverse.
    Reading options that need the file in one piece are in `IN_ONE_PIECE`; ``options`` names further such options.
    """
    args.scheduler = scheduler_of(
        path, args.scheduler, in_one_piece=any(getattr(args, name, False) for name in ORIENTATION)
    )
    if args.workers is not None and args.scheduler not in STARTED:
        raise ValueError(
            f"--workers={args.workers} is for a cluster of this machine: add --scheduler local (or cuda), or leave it "
            "out."
        )
    if args.scheduler is None:
        if args.chunk_rows is not None:
            raise ValueError(f"--chunk-rows={args.chunk_rows} is for work in chunks: add --scheduler, or leave it out.")
        return None
    for name in (*IN_ONE_PIECE, *options):
        value = getattr(args, name, None)
        if value is None or (value is False and name != "header"):
            continue
        option = "--no-header" if value is False else option_of(name)
        raise ValueError(f"{option} is for files that are read in one piece; leave it or --scheduler out.")
    return ChunkSettings(args.scheduler, args.workers, CHUNK_ROWS if args.chunk_rows is None else args.chunk_rows)
