"""The options of `gpuens run` that are a method's parameters: what its signature has, as its docstring explains it."""

import argparse
from collections.abc import Iterable
from typing import Any

from gpuens.options import NEEDED, Option, options

# parameters that options of another name stand for
SPELLED = {"n_clusters": "-k", "random_state": "--seed", "reduction": "--reduce"}


class OfMethod(argparse.Action):
    """Keeps what an option says until the method is known: {option: text} in ``of_method``."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        namespace.of_method = {**namespace.of_method, option_string: values}


def flags(kind: type) -> dict[str, Option]:
    """Return the parameters of a method by the options that stand for them."""
    return {SPELLED.get(name, f"--{name.replace('_', '-')}"): option for name, option in options(kind).items()}


def unknown(parser: argparse.ArgumentParser, words: Iterable[str]) -> list[str]:
    """Return the options among the words of a command that the command itself does not have."""
    found = dict.fromkeys(word.partition("=")[0] for word in words if word[:2] == "--" and len(word) > 2)
    return [flag for flag in found if flag not in parser._option_string_actions]


def explain(parser: argparse.ArgumentParser, name: str, kind: type, *, as_option: bool = True) -> None:
    """Add the options of a method to the help of a command, which may have some of them itself.

    The parameters of similarities and partitioners, which are no options of their own, follow their names.
    """
    group = parser.add_argument_group(f"options of {name}" if as_option else f"{name}:…, with commas between them")
    for flag, option in flags(kind).items():
        default = "" if option.default in (None, NEEDED) else f"; {option.default} if not given"
        words = f"{option.meaning} ({option.said or option.kinds}{default})".strip().replace("%", "%%")
        if not as_option:
            group.add_argument(option.name, help=words, metavar=f"{option.name}=VALUE")
        elif flag not in parser._option_string_actions:
            group.add_argument(flag, help=words, metavar="VALUE")
