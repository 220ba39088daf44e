"""``gpuens methods``: list the methods, similarities and partitioners, or explain their options."""

import argparse
from typing import Any

from gpuens.cli.arguments import Parser, add_shared
from gpuens.cli.options import explain, flags
from gpuens.cli.process import print_json
from gpuens.methods import REGISTRY, partitioners, similarities
from gpuens.runtime.registry import summary


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="methods, similarities or partitioners to explain")
    add_shared(parser, "json")


def methods(args: argparse.Namespace) -> None:
    if not args.names and not args.json:
        print("--method")
        _print(REGISTRY.summaries())
        kinds_of_part: dict[str, dict[str, Any]] = {"--similarity": similarities(), "--partitioner": partitioners()}
        for option, parts_of_kind in kinds_of_part.items():
            print(option)
            _print({name: summary(kind) for name, kind in parts_of_kind.items()})
        return
    parts: dict[str, Any] = {**similarities(), **partitioners()}
    kinds = {name: parts.get(name) or REGISTRY.load(name) for name in args.names} if args.names else REGISTRY.all()
    if args.json:
        print_json({name: _facts(kind) for name, kind in kinds.items()})
        return
    for name, kind in kinds.items():
        parser = Parser(description=f"{kind.__name__}. {summary(kind)}", usage=argparse.SUPPRESS, add_help=False)
        explain(parser, name, kind, as_option=name not in parts)
        print(parser.format_help())


def _print(summaries: dict[str, str]) -> None:
    for name, meaning in summaries.items():
        print(f"  {name:17}{meaning}")


def _facts(kind: type) -> dict[str, Any]:
    options = {
        flag: {"parameter": option.name, "type": option.type_text, "default": option.default, "meaning": option.meaning}
        for flag, option in flags(kind).items()
    }
    return {"estimator": f"{kind.__module__}.{kind.__qualname__}", "summary": summary(kind), "options": options}
