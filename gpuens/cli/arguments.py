"""The parser of commands, and the options that several commands share, which select and describe the input to read."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from gpuens.cli.options import OfMethod, explain, unknown
from gpuens.methods import REGISTRY
from gpuens.runtime.defaults import FORMS, METHOD


class Parser(argparse.ArgumentParser):
    """A parser that raises an error of one sentence for an invalid command line.

    The function ``complete`` adds the options of a command when the command line names it, so that the modules of other
    commands are not loaded. If the parser has a default for ``of_method``, it accepts any option; options that it does
    not know are interpreted later by the method (`cli.options`).
    """

    _method_flags: Sequence[str] = ()  # options that the method interprets, not the parser

    def __init__(
        self, *args: Any, complete: Callable[[argparse.ArgumentParser], None] | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self._complete = complete

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._complete is not None:
            self._complete(self)
            self._complete = None
        if self.get_default("of_method") is not None:
            if {"-h", "--help"} & set(args):
                self._explain_methods(args)
            self._method_flags = unknown(self, args)
            for flag in self._method_flags:
                self.add_argument(flag, action=OfMethod, nargs="?", help=argparse.SUPPRESS)
        return super().parse_known_args(args, namespace)

    def _explain_methods(self, args: list[str]) -> None:
        """Add the options of the named method to the help, and those of domains if it names neighbours."""
        named = Parser(add_help=False, allow_abbrev=False)
        named.add_argument("--method")
        method = named.parse_known_args(args)[0].method
        if method is not None:
            explain(self, method, REGISTRY.load(method))
        of_domains = [f"--{name.replace('_', '-')}" for name in self.get_default("of_domains") or ()]
        if any(word.partition("=")[0] in of_domains for word in args):
            from gpuens.methods.spatial import Spatial

            explain(self, "domains", Spatial)

    def error(self, message: str) -> NoReturn:
        # a message is shortened, because it may quote a long argument
        message = message if len(message) <= 500 else f"{message[:250]} …"
        hint = f" ({', '.join(self._method_flags)}: options of a method take a value)" if self._method_flags else ""
        raise ValueError(f"{message.rstrip('.')}{hint}; see {self.prog} --help.")


# options and arguments of several commands, by the name of what they set
SHARED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "labels": (("labels",), {"metavar": "LABELS", "help": "label file, as for `gpuens run`"}),
    "method": (("--method",), {"default": METHOD, "help": f"a method, see `gpuens methods` ({METHOD})"}),
    "seed": (("--seed",), {"type": int, "default": 0, "help": "random seed (0)"}),
    "device": (("--device",), {"default": "auto", "help": "where to work: auto, cpu or cuda (auto)"}),
    "json": (("--json",), {"action": "store_true", "help": "machine-readable output"}),
    "output": (("-o", "--output"), {"required": True, "help": "npy, npz, csv, tsv, parquet, h5ad or zarr"}),
}


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add the options of `SHARED` with these names."""
    for name in names:
        flags, settings = SHARED[name]
        parser.add_argument(*flags, **settings)


def option_of(name: str) -> str:
    """Return the option that makes a setting, such as "--max-length" for "max_length"."""
    return f"--{name.replace('_', '-')}"


def add_selection(parser: argparse.ArgumentParser, suffix: str = "") -> None:
    """Add the options that select columns or an array of a file; their names end in ``suffix``."""
    owner = f" of {suffix[1:].upper()}" if suffix else ""
    parser.add_argument(
        f"--columns{suffix}",
        type=listed,
        metavar="NAMES",
        help=f"columns{owner} to read: names, patterns such as 'leiden_*', or numbers from 0, separated by commas",
    )
    parser.add_argument(f"--key{suffix}", help=f"array of an npz file{owner}, or of an h5ad file with features")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe how to read a file, such as its separator and its words for missing labels."""
    parser.add_argument(
        "--exclude", type=listed, metavar="NAMES", help="columns of the labels to leave out, as in --columns"
    )
    parser.add_argument("--sep", type=_separator, help="separator of fields in text (default: detected)")
    first = parser.add_mutually_exclusive_group()
    first.add_argument("--header", action="store_true", default=None, help="text: the first line holds names")
    first.add_argument(
        "--no-header",
        dest="header",
        action="store_false",
        help="text: the first line holds data (default: detected)",
    )
    parser.add_argument(
        "--missing",
        type=listed,
        metavar="WORDS",
        help="words for missing labels besides empty fields, separated by commas: '?,unknown'",
    )
    parser.add_argument(
        "--id-column",
        metavar="NAME",
        help="column with the names of the objects, kept in the output: its name, or its number from 0 (default: a "
        "first column with a different text or whole number for each object)",
    )


def add_matching(parser: argparse.ArgumentParser) -> None:
    """Add the option for two files whose objects are matched by name unless the user says otherwise."""
    parser.add_argument(
        "--by-position",
        action="store_true",
        help="both files have the same objects in one order, whatever their names (default: matched by name)",
    )


def add_no_missing(parser: argparse.ArgumentParser) -> None:
    """Add the option that lists words which name clusters, though they usually mean a missing label."""
    parser.add_argument(
        "--no-missing",
        type=listed,
        metavar="WORDS",
        help="text: words that name a cluster, though NA, <NA>, N/A, #N/A, NaN and nan mean a missing label otherwise",
    )


def add_reading_of_labels(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe how to read a file of base clusterings."""
    add_reading(parser)
    add_no_missing(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--wide", action="store_true", help="each line is an object, even if clusterings are more")
    form.add_argument("--transpose", action="store_true", help="each line is a clustering, as in draws of R")
    form.add_argument(
        "--long",
        action="store_true",
        help="tables with a line for each label: object, clustering or annotator, label (columns in this order, or "
        "called task, worker, label and the like)",
    )
    form.add_argument(
        "--members",
        action="store_true",
        help="text with the members of a cluster in each line (MCL), or a cluster and a member (MMseqs2)",
    )
    form.add_argument(
        "--one-hot",
        action="store_true",
        help="columns of 0 and 1, one for each cluster: run1_1, run1_2, …",
    )


def add_share_column(parser: argparse.ArgumentParser) -> None:
    """Add the option for tables in long form whose objects may be in several clusters of a clustering."""
    parser.add_argument(
        "--share-column",
        metavar="NAME",
        help="--long: column with the share of an object in a cluster, where it is in several of one clustering "
        "(default: equal shares)",
    )


# names of options that are also parameters of `io.read_label_file`
READING = ("exclude", "id_column", "missing", "sep", "header", "no_missing", "share_column", *FORMS)


def reading(args: argparse.Namespace, suffix: str = "") -> dict[str, Any]:
    """Return the arguments for the reading functions of `gpuens.io`.

    If a command reads several files, ``suffix`` is the end of the names of the options for one of them.
    """
    selection = {name: getattr(args, f"{name}{suffix}") for name in ("columns", "key")}
    return selection | {name: getattr(args, name) for name in READING if hasattr(args, name)}


def reading_of_labels(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments for `io.read_label_file`."""
    return reading(args) | {"wide": args.wide, "transpose": args.transpose}


def options_of_labels(args: argparse.Namespace) -> list[str]:
    """Return the names of the options on the command line that describe a file of base clusterings."""
    return [option_of(name) for name, value in reading_of_labels(args).items() if value not in (None, False)]


def listed(text: str) -> list[str]:
    """Return the parts of a text between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _separator(text: str) -> str:
    """Return the separator that a text names, such as "tab"; return any other text unchanged."""
    return {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(text, text)
