"""Parameters written as text ("0.4", "lwca:theta=0.4") and read according to the signature of a class or function."""

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

NEEDED = inspect.Parameter.empty  # stands for the missing default of a required parameter
# the section "Parameters" of a numpydoc docstring without indentation, and its entries
SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^(\S[^\n]*)\n((?:[ \t]+[^\n]*\n?|\n)*)", re.MULTILINE)


class Option(NamedTuple):
    """A parameter that can be given as text.

    >>> from gpuens.runtime.options import options
    >>> def crowd(size: int | None = None, name: str = "crowd"): ...
    >>> options(crowd)["size"].read("7"), options(crowd)["name"].read("7")
    (7, '7')
    """

    name: str
    kind: Any  # the annotation
    default: Any
    type_text: str = ""  # its type in the docstring
    meaning: str = ""  # its description in the docstring

    def read(self, text: str, called: str | None = None) -> Any:
        """Return the value of a text, or refuse it; ``called`` is the name that the user wrote."""
        from gpuens.runtime.checks import shown

        for reader, _ in self._readers():
            try:
                return reader(text)
            except ValueError:
                pass
        raise ValueError(f"{called or self.name} must be {self.kinds}, not {shown(text)}.")

    @property
    def kinds(self) -> str:
        """Its types in words: "a whole number or none"."""
        return " or ".join(words for _, words in self._readers()) or "given in Python"

    @property
    def written_default(self) -> str:
        """The default as text for `read`."""
        if not isinstance(self.default, tuple):
            return str(self.default)
        separator = "," if any(reader is _numbers for reader, _ in self._readers()) else ":"
        return separator.join(map(str, self.default))

    def _readers(self) -> list[tuple[Callable[[str], Any], str]]:
        """Return the readers of the annotation's types, the strictest first."""
        union = typing.get_origin(self.kind) in (typing.Union, types.UnionType)
        kinds = typing.get_args(self.kind) if union else (self.kind,)
        if isinstance(self.kind, str) or NEEDED in kinds or Any in kinds:
            return [(_anything, "a value")]
        names = {getattr(typing.get_origin(kind) or kind, "__name__", "") for kind in kinds}
        return list(dict.fromkeys(reader for name, reader in READERS.items() if name in names))


def _none(text: str) -> None:
    if text.lower() != "none":
        raise ValueError


def _truth(text: str) -> bool:
    try:
        return {"true": True, "yes": True, "false": False, "no": False}[text.lower()]
    except KeyError:
        raise ValueError from None


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _pair(text: str) -> tuple[int | str, int | str]:
    first, second = (int(end) if end.isdecimal() else end for end in text.split(":"))
    return first, second


def _anything(text: str) -> Any:
    for reader in (_none, int, float, _numbers):
        try:
            return reader(text)
        except ValueError:
            pass
    return text


# name of a type -> its reader, and its description
READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "bool": (_truth, "true or false"),
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "Sequence": (_numbers, "numbers with commas between them"),
    "ndarray": (_numbers, "numbers with commas between them"),
    "tuple": (_pair, "two values with a colon between them"),
    "NoneType": (_none, "none"),
    "Literal": (str, "a word"),  # the class checks whether the word is allowed
    "str": (str, "a word"),
}


@cache
def options(kind: Callable[..., Any]) -> dict[str, Option]:
    """Return the parameters of a class or function by name, with their descriptions in its or its bases' docstrings."""
    try:
        parameters = inspect.signature(kind, eval_str=True).parameters
    except NameError:  # annotations that exist for type checkers only
        parameters = inspect.signature(kind).parameters
    meanings: dict[str, tuple[str, str]] = {}
    for base in reversed(getattr(kind, "__mro__", (kind,))):  # a class need not repeat the docstrings of its bases
        meanings |= _meanings(inspect.cleandoc(base.__doc__ or ""))
    return {
        name: Option(name, parameter.annotation, parameter.default, *meanings.get(name, ()))
        for name, parameter in parameters.items()
    }


def _meanings(docstring: str) -> dict[str, tuple[str, str]]:
    """Return the type and the description of each parameter in the section "Parameters" of a numpydoc docstring."""
    documented: dict[str, tuple[str, str]] = {}
    for head, text in entries_of(docstring):
        type_text = head.partition(" : ")[2].strip()
        documented |= dict.fromkeys(names_of(head), (type_text, " ".join(text.split())))
    return documented


def entries_of(docstring: str) -> list[tuple[str, str]]:
    """Return the first line and the indented text of each entry in the section "Parameters" of a numpydoc docstring."""
    section = SECTION.search(docstring)
    return ENTRY.findall(section[1]) if section else []


def names_of(head: str) -> list[str]:
    """Return the parameters that the first line of an entry names, such as "n_init, max_iter : int"."""
    return [name.strip() for name in head.partition(" : ")[0].split(",")]


def named(text: str, kinds: Mapping[str, Callable[..., Any]], noun: str) -> Any:
    """Return the object of a text such as "sample:5000,by=sum": call the named class of ``kinds`` with the parameters.

    The parameters follow the name, separated by commas; a value without a name is the first parameter. ``noun`` is the
    name of the argument in error messages.

    >>> from gpuens.runtime.options import named
    >>> named("range:stop=7", {"range": lambda stop, step=1: list(range(0, stop, step))}, "reduction")
    [0, 1, 2, 3, 4, 5, 6]
    """
    from gpuens.runtime.checks import check_choice

    name, _, rest = text.partition(":")
    kind = kinds[check_choice(name, noun, sorted(kinds))]
    parameters = options(kind)
    arguments: dict[str, Any] = {}
    # a comma ends a parameter if a name and = follow it; other commas belong to lists of numbers
    for part in filter(None, map(str.strip, re.split(r",(?=\s*\w+\s*=)", rest))):
        parameter, equals, value = (side.strip() for side in part.partition("="))
        if not equals:
            parameter, value = next(iter(parameters), part), part
        if parameter not in parameters or parameter in arguments:
            has = ", ".join(parameters) if parameters else "no parameters"
            raise ValueError(f"{noun} {name!r} cannot take {part!r}; it has {has}, each given once as name=value.")
        arguments[parameter] = parameters[parameter].read(value)
    missing = [
        option.name for option in parameters.values() if option.default is NEEDED and option.name not in arguments
    ]
    if missing:
        raise ValueError(f"{noun} {name!r} needs {', '.join(missing)}: write {name}:{missing[0]}=VALUE.")
    return kind(**arguments)
