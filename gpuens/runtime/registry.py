"""Classes by name, loaded on first use: gpuens's own classes, registered classes, and classes of other packages."""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class Registry:
    """A table of the classes of one kind by name.

    Parameters
    ----------
    noun : str
        The kind as error messages name it, such as "method". Other packages add classes by entry points in the group
        "gpuens.methods".
    base : str
        The base class of all classes, as "module:Class".
    places : mapping of str to str
        gpuens's own names, each with its "module:Class".
    """

    def __init__(self, noun: str, base: str, places: Mapping[str, str]) -> None:
        self.noun, self.base, self.places = noun, base, dict(places)
        self._registered: dict[str, type] = {}

    def load(self, name: Any) -> Any:
        """Return the class with a name, or refuse the name with the nearest ones."""
        if isinstance(name, str) and name in self._registered:
            return self._registered[name]
        if isinstance(name, str) and name in self.places:
            return _import(self.places[name])
        from gpuens.runtime import checks

        external = dict(self._entry_points())
        names = sorted({*self.places, *self._registered, *external})
        listed_by = f"gpuens.{self.noun}s() (gpuens {self.noun}s)"
        return self._class_of(external[checks.check_choice(name, self.noun, names, listed_by=listed_by)])

    def all(self) -> dict[str, Any]:
        """Return all classes by name in alphabetical order; warn about entry points that cannot be loaded."""
        return dict(sorted(({name: self.load(name) for name in self.places} | self._others()).items()))

    def summaries(self) -> dict[str, str]:
        """Return the first line of each class's docstring; for gpuens's own classes, read the files without import."""
        summaries = {name: _written_summary(place) for name, place in self.places.items()}
        return dict(sorted((summaries | {name: summary(kind) for name, kind in self._others().items()}).items()))

    def _others(self) -> dict[str, Any]:
        """Return the registered classes and the classes of other packages."""
        from gpuens.runtime import checks  # imports NumPy

        registered: dict[str, Any] = dict(self._registered)
        for name, entry in self._entry_points():
            try:
                registered[name] = self._class_of(entry)
            except (ImportError, TypeError) as error:
                checks.warn(str(error))
        return registered

    def register(self, name: str, kind: type) -> None:
        """Add a class; refuse names that are taken or malformed, and classes not derived from the base."""
        self._check_name(name)
        self._check_class(kind, name)
        before = self._registered.get(name)
        names = dict(self._entry_points()).keys() | self.places.keys()
        if before is not None and (before.__module__, before.__qualname__) != (kind.__module__, kind.__qualname__):
            names |= {name}  # only another class is refused: a notebook cell may register its class twice
        if name in names:
            raise ValueError(f"name {name!r} is taken by another {self.noun}; choose another name.")
        self._registered[name] = kind

    def _entry_points(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and entry points of other packages; warn about each one left out."""
        from importlib.metadata import entry_points

        from gpuens.runtime import checks

        places = self.places | dict.fromkeys(self._registered, "")
        for entry in entry_points(group=f"gpuens.{self.noun}s"):
            if places.get(entry.name) == entry.value:  # the package is installed twice
                continue
            try:
                self._check_name(entry.name)
                if entry.name in places:
                    raise ValueError(f"there is another {self.noun} of that name.")
            except ValueError as error:
                checks.warn(f"{_describe(entry)} is left out: {error}")
                continue
            places[entry.name] = entry.value
            yield entry.name, entry

    def _class_of(self, entry: Any) -> type:
        try:
            kind: type = entry.load()
        except Exception as error:  # importing the other package may raise anything
            raise ImportError(
                f"{_describe(entry)} does not load ({type(error).__name__}: {error}); fix or remove that package."
            ) from error
        self._check_class(kind, entry.name)
        return kind

    def _check_name(self, name: Any) -> None:
        from gpuens.runtime import checks

        if not isinstance(name, str):
            raise TypeError(f"name must be a string, not {checks.shown(name)}.")
        if not re.fullmatch("[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
            raise ValueError(f"name must be lower-case letters, digits and single dashes, not {checks.shown(name)}.")

    def _check_class(self, kind: Any, name: str) -> None:
        from gpuens.runtime import checks

        base = _import(self.base)
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise TypeError(
                f"{self.noun} {name!r} must be a class derived from {self.base.replace(':', '.')}, not "
                f"{checks.shown(kind)}."
            )


def _import(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def summary(kind: type) -> str:
    """Return the first line of a class's docstring."""
    import inspect

    return (inspect.getdoc(kind) or "").split("\n")[0]


def _written_summary(place: str) -> str:
    """Return `summary` of a class from the source of its module."""
    import ast

    module, _, name = place.partition(":")
    spec = find_spec(module)
    source = getattr(spec.loader, "get_source", lambda _: None)(module) if spec is not None else None
    for node in ast.parse(source or "").body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return (ast.get_docstring(node) or "").split("\n")[0]
    return summary(_import(place))  # the package is installed without sources


def _describe(entry: Any) -> str:
    package = f" of package {entry.dist.name!r}" if entry.dist else ""
    return f"entry point {entry.name!r}{package}"
