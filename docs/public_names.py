"""The public names that programs can depend on, with their signatures, one a line in docs/public_names.txt.

    python docs/public_names.py   # the file anew, after a change of public names; the diff shows what changes for users

A line has the version since which a name exists, such as `0.1  gpuens.metrics.ari(a, b, *, sample_weight=None)`. Old
lines keep their version. A test compares the file with the package, and the API reference shows the versions.
"""

import inspect
from functools import cache
from pathlib import Path
from typing import Any

import gpuens
from gpuens.methods.parameters import Parameters

FILE = Path(__file__).parent / "public_names.txt"


def public_names() -> dict[str, str]:
    """Return {name: signature}, of names in ``__all__``, of the classes that they return, of bases, and of members.

    A value that is no function and no class has an empty signature. A class or function with two names has the shorter
    one, and a member belongs to the first class that defines it.
    """
    modules = [gpuens, *(getattr(gpuens, name) for name in gpuens.__all__ if inspect.ismodule(getattr(gpuens, name)))]
    named = [(f"{module.__name__}.{name}", getattr(module, name)) for module in modules for name in module.__all__]
    results = [_result(thing) for _, thing in named if inspect.isfunction(thing)]
    classes = [kind for kind in (*results, *(thing for _, thing in named)) if inspect.isclass(kind)]
    bases = [base for kind in classes for base in kind.__mro__ if base.__module__.startswith("gpuens.")]
    named += [(f"{base.__module__}.{base.__name__}", base) for base in bases if not base.__name__.startswith("_")]
    found: dict[str, str] = {}
    seen: set[Any] = set()
    for name, thing in named:
        if callable(thing) and thing in seen:
            continue
        found[name] = _signature(thing)
        if callable(thing):
            seen.add(thing)
        if inspect.isclass(thing):
            found |= {f"{name}.{member}": signature for member, signature in _members(thing).items()}
    return dict(sorted(found.items()))


@cache
def since() -> dict[str, str]:
    """Return {name: version since which it exists} as docs/public_names.txt says."""
    lines = (line.split(maxsplit=1) for line in FILE.read_text().splitlines())
    return {text.split("(")[0]: version for version, text in lines}


def listed(known: dict[str, str]) -> str:
    """Return the text of the file; names that are not ``known`` with a version have that of this package."""
    now = ".".join(gpuens.__version__.split(".")[:2])
    return "".join(f"{known.get(name, now)}  {name}{signature}\n" for name, signature in public_names().items())


def with_version(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Add the version of a public name to its page, as a hook of Sphinx; members as old as their class have none."""
    version, of_owner = since().get(name), since().get(name.rpartition(".")[0])
    if version is not None and (what in ("function", "class", "data") or version != of_owner):
        lines += ["", ".. container:: since", "", f"   Since version {version}."]


def _result(function: Any) -> Any:
    """Return the class of the package that a function returns, or None."""
    kind = inspect.get_annotations(inspect.unwrap(function)).get("return")
    return kind if inspect.isclass(kind) and kind.__module__.startswith("gpuens.") else None


def _members(kind: type) -> dict[str, str]:
    """Return the fields, methods and attributes that a class adds to its bases or changes, with their signatures."""
    own = {name for name in {*vars(kind), *inspect.get_annotations(kind)} if not name.startswith("_")}
    if issubclass(kind, Parameters):  # the signature has the parameters
        own -= inspect.signature(kind).parameters.keys()
    signatures = {name: _signature(getattr(kind, name, None)) for name in sorted(own)}
    inherited = {name for base in kind.__mro__[1:] for name in {*vars(base), *inspect.get_annotations(base)}}
    before = {name: _signature(getattr(super(kind, kind), name, None)) for name in own & inherited}
    return {
        name: signature
        for name, signature in signatures.items()
        if before.get(name) != signature and not name.endswith("_request")  # scikit-learn's set_fit_request
    }


def _signature(thing: Any) -> str:
    """Return the parameters and defaults of a function or class, without types; "" for other values."""
    if not callable(thing):
        return ""
    signature = inspect.signature(thing)
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


if __name__ == "__main__":
    FILE.write_text(listed(since() if FILE.exists() else {}))
