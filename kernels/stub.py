"""Write the stub of the extension, by which type checkers and editors know it: kernels/stub.py EXTENSION ... STUB."""

import re
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

from nanobind.stubgen import StubGen


class Stub(StubGen):
    """nanobind's stub; records become named tuples, whose fields may be arrays of any device."""

    def put_type(self, tp: Any, name: str | None) -> None:
        if not hasattr(tp, "_fields"):
            return super().put_type(tp, name)
        for line in (f"class {name}(typing.NamedTuple):", *(f"    {field}: typing.Any" for field in tp._fields)):
            self.write_ln(self.simplify_types(line))
        self.write_ln("")


def stub_of(path: Path) -> str:
    """Return the stub of an extension, which is loaded without its package."""
    loader = ExtensionFileLoader(path.name.split(".")[0], str(path))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    stub = Stub(module)
    stub.put(module)
    return re.sub(r"\b(\w+)( \| \1\b)+", r"\1", stub.get())  # the types of a template are one class


if __name__ == "__main__":
    extension, *_, output = map(Path, sys.argv[1:])  # of several levels, any
    output.write_text(stub_of(extension))
