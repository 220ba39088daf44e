"""The command line ``gpuens``, with the commands ``run``, ``cluster``, ``batch``, ``compare``, ``generate``, ….

Results are printed to stdout. Errors, warnings and progress are printed to stderr, one line each. The module of a
command is loaded when the command line names it, and slow modules when they are needed. The exit codes
(`gpuens.runtime.failures`) are:

- 0: success.
- 1: an unforeseen error.
- 2: a refused command.
- 3: refused input.
- 75: a failure that may not occur at the next try.
- 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM.
"""

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from gpuens import __version__
from gpuens.cli.arguments import Parser
from gpuens.cli.deferred import defer
from gpuens.cli.process import clean_stops, few_collections, one_line_warnings, print_error, replace_closed_streams
from gpuens.runtime import failures, progress

# the commands and their purpose, in the order of the help; the module of a command has its options in the function
# `add`, and runs it by the function of its name
COMMANDS = {
    "run": "Find the consensus of the base clusterings in a file, or in several files whose objects are joined by "
    "name.",
    "cluster": "Cluster objects by their features: make many base clusterings, and find their consensus.",
    "batch": "Run the jobs of a manifest: many consensus runs, which resume after a stop.",
    "choose": "Compare numbers of clusters, and suggest one with its reason.",
    "compare": "Run many methods on the same base clusterings, and compare their results, time and memory.",
    "describe": "Describe the base clusterings in a file, and foresee the memory of each method.",
    "evidence": "Measure how strongly base clusterings support a consensus: its clusters, its objects, and the whole.",
    "predict": "Label new objects by a model, without a new consensus.",
    "align": "Name the clusters of all clusterings after those of a reference, so that equal labels mean equal "
    "clusters.",
    "modes": "Divide clusterings into modes, groups that agree, each with a consensus of its own.",
    "join": "Join the clusterings of several files by the names of the objects.",
    "generate": "Make many base clusterings of features: k-means, landmark spectral clustering, mixed kinds, or "
    "Leiden.",
    "graph": "Cluster the objects of a graph: find the consensus of clusterings, of which only edges are compared.",
    "score": "Compare the labels in one file with the labels in another.",
    "methods": "List the methods, similarities and partitioners, or explain the options of the named ones.",
    "info": "Show the processor, the devices and the installed packages, and what to type for missing ones.",
    "demo": "Show a consensus of real data: a table of scores and a picture.",
    "warm": "Compile all kernels for the visible GPU, so that the first fit does not wait.",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after the program's name. By default, those of this process; the process then also cleans up when a
        signal ends it, collects garbage rarely, and loads some modules late.

    Examples
    --------
    >>> main(["run", "nowhere.npy", "-k", "7"])
    3
    """
    if argv is None:
        replace_closed_streams()
        defer()
        with clean_stops(), few_collections():
            return main(sys.argv[1:])
    argv = list(argv)
    with contextlib.suppress(AttributeError):  # letters that the terminal cannot show are printed as "?"
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        args, unknown = _parser().parse_known_args(argv)
        if unknown:
            raise ValueError(f"unrecognized arguments: {' '.join(unknown)[:250]}; see gpuens {argv[0]} --help.")
        args.argv = ["gpuens", *argv]
        with one_line_warnings() as args.warned, _progress(args):
            # `gpuens info` omits this check, so that it works even if there is a fault to find
            if args.command.__module__ != "gpuens.cli.info":
                import_module("gpuens.runtime.checks").check_addresses()
            code = args.command(args) or 0
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # the program that reads the output has ended, as in `gpuens info | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in argv:
            traceback.print_exception(error)
        print_error(failures.describe(error))
        return failures.exit_code(error)


def _progress(args: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Return the context in which a command shows its progress, or, with --quiet, shows none.

    The context does nothing if the command writes its log as lines of JSON.
    """
    if getattr(args, "log_format", "text") == "json":
        return contextlib.nullcontext()
    return progress.silent() if args.quiet else progress.telling()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="gpuens", description="Consensus clustering of millions of objects.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"gpuens {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    common = Parser(add_help=False)
    common.add_argument("--quiet", action="store_true", help="no progress bars and no summary")
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    for name, purpose in COMMANDS.items():
        commands.add_parser(
            name,
            help=purpose,
            description=purpose,
            parents=[common],
            allow_abbrev=False,
            complete=partial(_complete, name),
        )
    return parser


def _complete(name: str, parser: argparse.ArgumentParser) -> None:
    """Load the module of a command, and add its options."""
    module = import_module(f"gpuens.cli.{name}")
    module.add(parser)
    parser.set_defaults(command=getattr(module, name))
