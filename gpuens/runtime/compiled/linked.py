"""Functions that compiled functions call: optimised and made machine code once, where they are linked in.

By Numba's inner workings, which a release may change: `gpuens.runtime.compiled.TRIED` names those that were tried.
"""

import gc
from functools import cached_property
from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher


class _Linked(JITCodeLibrary):
    """The code of a function that others call: their code takes it in, and is optimised and made machine code then.

    Numba does both for each function on its own before, and again for all that takes it in.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> "_Linked":
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do without the environment, which only what handles Python objects reads."""


class _LinkedCompiler(Compiler):
    def define_pipelines(self) -> Any:
        function = self.state.func_id.func_qualname
        self.state.library = _Linked(self.state.targetctx.codegen(), function)
        return super().define_pipelines()


class Function(CPUDispatcher):
    """A compiled function that Python calls, and whose ``inner`` one other compiled functions call."""

    @cached_property
    def inner(self) -> Any:
        options = {**self.targetoptions, "no_cpython_wrapper": True}
        return CPUDispatcher(self.py_func, targetoptions=options, pipeline_class=_LinkedCompiler)

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock:  # one thread at a time stops the garbage collector: a tenth of the time
            collects = gc.isenabled()
            gc.disable()
            try:
                return super().compile(sig)
            finally:
                if collects:
                    gc.enable()

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the template of ``inner`` for arguments of any value: constants would have functions of their own."""
        of_any = {name: types.unliteral(kind) for name, kind in kws.items()}
        return self.inner.get_call_template(tuple(map(types.unliteral, args)), of_any)

    def get_overload(self, sig: Any) -> Any:
        return self.inner.get_overload(sig)
