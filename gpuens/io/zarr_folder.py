"""A check that a new zarr array may replace a folder, which must hold only metadata and chunks of one zarr array."""

import json
import os
import re
from collections.abc import Iterator

METADATA = (".zarray", ".zattrs", "zarr.json")  # metadata files: two of zarr format 2, one of format 3
CHUNK = re.compile(r"(c|(c[/.])?[0-9]+([/.][0-9]+)*)")


def refuse_other(path: str | os.PathLike[str]) -> None:
    """Raise an error if ``path`` is a folder that must not be replaced: neither empty nor one zarr array."""
    path = os.fspath(path)
    found = sorted(_entries(path)) if os.path.isdir(path) else []
    foreign = [entry for entry in found if entry not in METADATA and not CHUNK.fullmatch(entry)]
    if found and not foreign and not _is_array(path):
        foreign = found
    if foreign:
        raise FileExistsError(
            f"path {path!r} is a folder that contains {foreign[0]!r}, but only an empty folder or a zarr array may be "
            "replaced; name another place, or move the folder away."
        )


def _entries(path: str) -> Iterator[str]:
    """Yield the path of each file and subfolder in a folder, relative to the folder and with slashes."""
    for folder, folders, files in os.walk(path):
        for entry in (*folders, *files):
            yield os.path.relpath(os.path.join(folder, entry), path).replace(os.sep, "/")


def _is_array(path: str) -> bool:
    """Return whether the metadata in a folder describe one zarr array, not a group of arrays."""
    try:
        if os.path.exists(os.path.join(path, ".zarray")):
            return True
        with open(os.path.join(path, "zarr.json"), encoding="utf-8") as file:
            metadata = json.load(file)
        return isinstance(metadata, dict) and metadata.get("node_type") == "array"
    except (OSError, ValueError):
        return False
