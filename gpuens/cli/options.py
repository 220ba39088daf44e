"""Command-line options made from the signature and the docstring of a method or function, one for each parameter."""

import argparse
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from gpuens.runtime.options import NEEDED, Option, options

# names of parameters whose options have a different name → these names of the options
SPELLED = {
    "n_clusters": "-k",
    "random_state": "--seed",
    "reduction": "--reduce",
    "missing": "--missing-labels",  # because --missing already sets the words that mean a missing label in a file
}


class OfMethod(argparse.Action):
    """An action that stores the name and the text of an option in the dict ``of_method``, until the method is known."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        namespace.of_method = {**namespace.of_method, option_string: values}


def flags(kind: Callable[..., Any]) -> dict[str, Option]:
    """Return a dict {name of the option, such as "--theta": `Option`} for the parameters of a method or function."""
    return spelled(options(kind))


def spelled(parameters: Mapping[str, Option]) -> dict[str, Option]:
    """Return {name of the option, such as "--theta": `Option`} for parameters by name."""
    return {SPELLED.get(name, f"--{name.replace('_', '-')}"): option for name, option in parameters.items()}


def unknown(parser: argparse.ArgumentParser, words: Iterable[str]) -> list[str]:
    """Return the names of the options in a command line that the parser does not know."""
    flags = dict.fromkeys(word.partition("=")[0] for word in words if word[:2] == "--" and len(word) > 2)
    return [flag for flag in flags if flag not in parser._option_string_actions]


def explain(parser: argparse.ArgumentParser, name: str, kind: type, *, as_option: bool = True) -> None:
    """Add the options of a method to the help of a command, except options that the command itself has.

    If ``as_option`` is false, list the parameters as NAME=VALUE, because similarities and partitioners take them so.
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
    """Add the parameters of functions as options of a command, unless the command already has these options.

    The help of an option names the functions that have it, unless all functions have it with the same help text.
    `read_parameters` reads the options.
    """
    # (name of the option, name of the parameter) → help text → names of the functions with this help text
    texts_of: dict[tuple[str, str], dict[str, list[str]]] = {}
    for kind, function in functions.items():
        for flag, option in flags(function).items():
            if option.name not in leave_out and flag not in parser._option_string_actions:
                texts_of.setdefault((flag, option.name), {}).setdefault(_help(option), []).append(kind)
    for (flag, name), functions_of in texts_of.items():
        spellings = dict.fromkeys([flag, f"--{name.replace('_', '-')}"])
        texts = [text if len(of) == len(functions) else f"{', '.join(of)}: {text}" for text, of in functions_of.items()]
        parser.add_argument(*spellings, dest=name, help="; ".join(texts), metavar="VALUE")


def read_parameters(
    args: argparse.Namespace, function: Callable[..., Any], leave_out: Container[str]
) -> dict[str, Any]:
    """Return the arguments of a function from a parsed command line; if an option is not given, use its default."""
    arguments = {}
    for flag, option in flags(function).items():
        if option.name not in leave_out:
            text = getattr(args, option.name)
            arguments[option.name] = option.default if text is None else option.read(text, flag)
    return arguments


def refuse_parameters(
    args: argparse.Namespace, function: Callable[..., Any], instead: Callable[..., Any], sentence: str
) -> None:
    """Raise an error for options that are parameters of ``function`` but not of ``instead``, which will be called."""
    for flag, option in flags(function).items():
        if flag not in flags(instead) and getattr(args, option.name, None) is not None:
            raise ValueError(sentence.format(flag))


def _help(option: Option) -> str:
    default = "" if option.default in (None, NEEDED) else f"; {option.written_default} if not given"
    return f"{option.meaning} ({option.type_text or option.kinds}{default})".strip().replace("%", "%%")
