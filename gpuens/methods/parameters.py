"""Parameters of estimators: annotated fields of their classes, which make the constructor and complete the docstring.

    class LWGP(Seeded):
        theta: float = 0.4
        weights: Any = None

The constructor of this class takes `n_clusters`, then by keyword `theta`, `weights`, and the fields of the bases:
`random_state`, `reduction` and `device`. A field of a base that a class sets without an annotation is a constant of
that class, and no parameter. An entry that a docstring lacks in its section "Parameters" is that of the nearest base.
"""

import inspect
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform, get_origin

from gpuens.runtime.options import SECTION, entries_of, names_of

FIRST = ("n_clusters",)  # parameters that need no keyword
LAST = ("random_state", "reduction", "device")  # parameters at the end of every signature

T = TypeVar("T")


def positional(*, default: T, kw_only: Literal[False]) -> T:
    """Return the default of a parameter that needs no keyword; type checkers read ``kw_only``."""
    return default


@dataclass_transform(kw_only_default=True, field_specifiers=(positional,))
class Parameters:
    """A base of classes whose annotated fields are the parameters of their constructor."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherited = cls.__init__ is object.__init__ or hasattr(cls.__init__, "__signature__")
        if "__init__" in vars(cls) or not inherited:
            return  # a constructor that is written out
        cls.__init__ = _constructor(_signature(cls))  # type: ignore[method-assign]
        if cls.__doc__:
            cls.__doc__ = _completed(cls)


def _signature(cls: type) -> inspect.Signature:
    """Return the signature of a class's constructor; the nearest class that names a field decides on it."""
    fields: dict[str, inspect.Parameter | None] = {}  # None for a constant
    for base in cls.__mro__:
        annotations = inspect.get_annotations(base) if issubclass(base, Parameters) else {}
        for name, default in vars(base).items():
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if name in FIRST else inspect.Parameter.KEYWORD_ONLY
            field = None
            annotation = annotations.get(name, ClassVar)
            if ClassVar not in (annotation, get_origin(annotation)) and not name.startswith("_"):
                field = inspect.Parameter(name, kind, default=default, annotation=annotation)
            fields.setdefault(name, field)
    order = [*FIRST, *(name for name in fields if name not in FIRST + LAST), *LAST]
    parameters = [field for name in order if (field := fields.get(name)) is not None]
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([this, *parameters])


def _constructor(signature: inspect.Signature) -> Any:
    """Return an ``__init__`` that stores its arguments untouched."""

    def __init__(self: Any, *arguments: Any, **keywords: Any) -> None:
        bound = signature.bind(self, *arguments, **keywords)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def _completed(cls: type) -> str:
    """Return the docstring of a class with an entry for each parameter, in the order of the signature."""
    docstring = inspect.cleandoc(cls.__doc__ or "")
    entries: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        for head, text in entries_of(inspect.cleandoc(vars(base).get("__doc__") or "")):
            entries |= dict.fromkeys(names_of(head), f"{head}\n{text}".rstrip())
    parameters = list(inspect.signature(cls).parameters)
    texts = dict.fromkeys(entries[name] for name in parameters if name in entries)  # an entry may name several
    section = "Parameters\n----------\n" + "\n".join(texts) + "\n\n"
    if SECTION.search(docstring):
        return SECTION.sub(lambda _: section, docstring, count=1).rstrip()
    return docstring  # "Parameters are those of …"
