"""Options that are the parameters of a method or function: its signature has them and its docstring explains them."""

import argparse
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from gpuens.runtime.options import NEEDED, Option, options

# parameters whose options have other names
SPELLED = {
    "n_clusters": "-k",
    "random_state": "--seed",
    "reduction": "--reduce",
    "missing": "--missing-labels",  # --missing names the words of a file that mean a missing label
}


class OfMethod(argparse.Action):
    """Keeps the text of an option until the method is known: {option: text} in ``of_method``."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        namespace.of_method = {**namespace.of_method, option_string: values}


def flags(kind: Callable[..., Any]) -> dict[str, Option]:
    """Return the parameters of a method or function by the options that stand for them."""
    return {SPELLED.get(name, f"--{name.replace('_', '-')}"): option for name, option in options(kind).items()}


def unknown(parser: argparse.ArgumentParser, words: Iterable[str]) -> list[str]:
    """Return the options among the words of a command line that its parser does not know."""
    found = dict.fromkeys(word.partition("=")[0] for word in words if word[:2] == "--" and len(word) > 2)
    return [flag for flag in found if flag not in parser._option_string_actions]


def explain(parser: argparse.ArgumentParser, name: str, kind: type, *, as_option: bool = True) -> None:
    """Add the options of a method to the help of a command, except those that the command has itself.

    With ``as_option=False`` parameters are listed as NAME=VALUE: those of similarities and partitioners are no options.
    """
    group = parser.add_argument_group(f"options of {name}" if as_option else f"{name}:…, with commas between them")
    for flag, option in flags(kind).items():
        if not as_option:
            group.add_argument(option.name, help=_help(option), metavar=f"{option.name}=VALUE")
        elif flag not in parser._option_string_actions:
            group.add_argument(flag, help=_help(option), metavar="VALUE")


def add_parameters(
    parser: argparse.ArgumentParser, functions: Mapping[str, Callable[..., Any]], leave_out: Container[str]
) -> None:
    """Add the parameters of functions to the options of a command, but those that it has; see `read_parameters`.

    The help says of which functions an option is, by their names, unless it is the same for all.
    """
    found: dict[tuple[str, str], dict[str, list[str]]] = {}  # the functions by what they say of an option
    for kind, function in functions.items():
        for flag, option in flags(function).items():
            if option.name not in leave_out and flag not in parser._option_string_actions:
                found.setdefault((flag, option.name), {}).setdefault(_help(option), []).append(kind)
    for (flag, name), said in found.items():
        spellings = dict.fromkeys([flag, f"--{name.replace('_', '-')}"])
        texts = [text if len(of) == len(functions) else f"{', '.join(of)}: {text}" for text, of in said.items()]
        parser.add_argument(*spellings, dest=name, help="; ".join(texts), metavar="VALUE")


def read_parameters(
    args: argparse.Namespace, function: Callable[..., Any], leave_out: Container[str]
) -> dict[str, Any]:
    """Return the arguments of a function from a parsed command line, with the function's defaults for the others."""
    found = {}
    for flag, option in flags(function).items():
        if option.name not in leave_out:
            text = getattr(args, option.name)
            found[option.name] = option.default if text is None else option.read(text, flag)
    return found


def refuse_parameters(
    args: argparse.Namespace, function: Callable[..., Any], instead: Callable[..., Any], sentence: str
) -> None:
    """Refuse options that are parameters of a function and not of the one that is called instead of it."""
    for flag, option in flags(function).items():
        if flag not in flags(instead) and getattr(args, option.name, None) is not None:
            raise ValueError(sentence.format(flag))


def _help(option: Option) -> str:
    default = "" if option.default in (None, NEEDED) else f"; {option.written_default} if not given"
    return f"{option.meaning} ({option.said or option.kinds}{default})".strip().replace("%", "%%")
