"""What several commands can be told: which part of files to read, and how."""

import argparse
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """A parser that refuses in one sentence, like everything else here."""

    def error(self, message: str) -> NoReturn:
        message = message if len(message) <= 500 else f"{message[:250]} …"  # it quotes whatever was typed
        raise ValueError(f"{message.rstrip('.')}; see {self.prog} --help.")


def add_selection(parser: argparse.ArgumentParser, suffix: str = "") -> None:
    """Add the options that say which part of a file to read."""
    whose = f" of {suffix[1:].upper()}" if suffix else ""
    parser.add_argument(
        f"--columns{suffix}",
        type=_listed,
        metavar="NAMES",
        help=f"columns{whose} to read: names, patterns such as 'leiden_*' or numbers from 0 on, with commas",
    )
    parser.add_argument(f"--key{suffix}", help=f"array of an npz file{whose}, or of an h5ad file with features")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to read a file."""
    parser.add_argument("--exclude", type=_listed, metavar="NAMES", help="columns to leave out, as in --columns")
    parser.add_argument("--sep", type=_separator, help="what separates the fields of csv and tsv (told from the file)")
    first = parser.add_mutually_exclusive_group()
    first.add_argument("--header", action="store_true", default=None, help="the first line of csv and tsv holds names")
    first.add_argument("--no-header", dest="header", action="store_false", help="it does not (told from the file)")
    parser.add_argument(
        "--missing",
        type=_listed,
        metavar="WORDS",
        help="what stands for missing beside empty fields, with commas: '?,unknown'",
    )
    parser.add_argument("--id-column", metavar="NAME", help="the column that names the objects, for the output")


READING = ("exclude", "id_column", "missing", "sep", "header")  # options of the parameters of `io.read_labels`


def reading(args: argparse.Namespace, suffix: str = "") -> dict[str, Any]:
    """Return how to read a file, as `gpuens.io` calls it, with the columns that options with this suffix name."""
    found = {name: getattr(args, f"{name}{suffix}") for name in ("columns", "key")}
    return found | {name: getattr(args, name) for name in READING if hasattr(args, name)}


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _separator(text: str) -> str:
    """Read a separator, of which a shell can hardly be told some."""
    return {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(text, text)
