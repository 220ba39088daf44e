"""``gpuens methods``: a list of methods, similarities and partitioners, and the options of each."""

import argparse
import inspect
from collections.abc import Callable
from typing import Any

from gpuens.cli.arguments import Parser
from gpuens.cli.files import print_json
from gpuens.cli.options import explain, flags


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = command(
        "methods", methods, "List the methods, similarities and partitioners, or explain the options of some."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="methods, similarities or partitioners to explain")
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def methods(args: argparse.Namespace) -> None:
    from gpuens.methods import REGISTRY, partitioners, similarities

    if not args.names and not args.json:
        listed = {"--method": REGISTRY.all(), "--similarity": similarities(), "--partitioner": partitioners()}
        for option, those in listed.items():
            print(option)
            for name, summary in summaries(those).items():
                print(f"  {name:17}{summary}")
        return
    parts: dict[str, Any] = {**similarities(), **partitioners()}
    kinds = {name: parts.get(name) or REGISTRY.load(name) for name in args.names} if args.names else REGISTRY.all()
    if args.json:
        print_json({name: _facts(kind) for name, kind in kinds.items()})
        return
    for name, kind in kinds.items():
        parser = Parser(description=f"{kind.__name__}. {_summary(kind)}", usage=argparse.SUPPRESS, add_help=False)
        explain(parser, name, kind, as_option=name not in parts)
        print(parser.format_help())


def summaries(kinds: dict[str, Any]) -> dict[str, str]:
    """Return the first line of each method's docstring."""
    return {name: _summary(kind) for name, kind in kinds.items()}


def _summary(kind: type) -> str:
    return (inspect.getdoc(kind) or "").split("\n")[0]


def _facts(kind: type) -> dict[str, Any]:
    said = {
        flag: {"parameter": option.name, "type": option.said, "default": option.default, "meaning": option.meaning}
        for flag, option in flags(kind).items()
    }
    return {"estimator": f"{kind.__module__}.{kind.__qualname__}", "summary": _summary(kind), "options": said}
