"""The command line: ``gpuens run``, ``cluster``, ``batch``, ``compare``, ``generate``, ``score``, ``methods``, ….

Results go to stdout, everything else to stderr, one line each. The exit code is 0; 2 for a refused command; 3 for
refused input; 75 for what may be gone at the next try; 1 for anything unforeseen; 130 after Ctrl-C, 143 after SIGTERM
and 129 after SIGHUP (`gpuens.runtime.failures`). Commands import modules that take long to load when they need them.
"""

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gpuens import __version__
from gpuens.cli.arguments import Parser
from gpuens.cli.process import clean_stops, few_collections, one_line_warnings, print_error, replace_closed_streams
from gpuens.runtime import failures, progress

# a module each, in the order of the help
COMMANDS = (
    *("run", "cluster", "batch", "choose", "compare", "describe", "evidence", "predict"),
    *("generate", "score", "methods", "info", "demo", "warm"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after the program's name. By default those of this process, which then also cleans up when a signal
        ends it, and seldom collects garbage.

    Examples
    --------
    >>> main(["run", "nowhere.npy", "-k", "7"])
    3
    """
    if argv is None:
        replace_closed_streams()
        with clean_stops(), few_collections():
            return main(sys.argv[1:])
    argv = list(argv)
    with contextlib.suppress(AttributeError):  # a terminal that cannot show every letter still gets the rest
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        args, unknown = _parser().parse_known_args(argv)
        if unknown:
            raise ValueError(f"unrecognized arguments: {' '.join(unknown)[:250]}; see gpuens {argv[0]} --help.")
        args.argv = ["gpuens", *argv]
        with one_line_warnings() as args.warned, _progress(args):
            if args.command.__module__ != "gpuens.cli.info":  # `gpuens info` loads nothing, and helps to see why
                import_module("gpuens.runtime.checks").check_addresses()
            code = args.command(args) or 0
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output has seen enough: `gpuens info | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in argv:
            traceback.print_exception(error)
        print_error(failures.describe(error))
        return failures.exit_code(error)


def _progress(args: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Return the context in which the command says what takes long, if it says anything but lines of JSON."""
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

    def command(name: str, function: Any, description: str, **more: Any) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=description, description=description, parents=[common], allow_abbrev=False, **more
        )
        sub.set_defaults(command=function)
        return sub

    for name in COMMANDS:
        import_module(f"gpuens.cli.{name}").add(command)
    return parser
