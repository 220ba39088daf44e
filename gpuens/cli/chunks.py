"""The options for work in chunks, which commands that can use Dask share."""

import argparse
from collections.abc import Sequence

from gpuens.workflows.run import CHUNK_ROWS, IN_ONE_PIECE, ORIENTATION, STARTED, ChunkSettings, scheduler_of


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


def chunks_of(args: argparse.Namespace, path: str, *more: str) -> ChunkSettings | None:
    """Return the settings for reading a file in chunks, or None to read the file in one piece.

    Raise an error for options that apply only to reading in chunks if the file is read in one piece, and the reverse.
    Reading options that need the file in one piece are in `IN_ONE_PIECE`; ``more`` names further such options.
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
    _refuse_in_one_piece(args, (*IN_ONE_PIECE, *more))
    return ChunkSettings(args.scheduler, args.workers, CHUNK_ROWS if args.chunk_rows is None else args.chunk_rows)


def _refuse_in_one_piece(args: argparse.Namespace, names: Sequence[str]) -> None:
    for name in names:
        value = getattr(args, name, None)
        if value is None or (value is False and name != "header"):
            continue
        option = "--no-header" if value is False else f"--{name.replace('_', '-')}"
        raise ValueError(f"{option} is for files that are read in one piece; leave it or --scheduler out.")
