"""Which function does a primitive's work on which device.

A primitive is one small computation on plain arrays (intersections, nearest lists, operator products, …). It has one
signature and one version a device; callers name the device and nothing else. The CPU version is the decorated
function itself. A CUDA version registers under the same name with `runs_on` and launches a kernel of ``kernels/*.cu``.

>>> from gpuens import kernels
>>> @kernels.primitive
... def doubled(values):
...     return values * 2
>>> doubled(21, device="cpu")
42
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

_versions: dict[str, dict[str, Callable]] = {}  # primitive -> device -> function


def primitive(cpu: Callable) -> Callable:
    """Make ``cpu`` the CPU version of a primitive, and return the function that chooses by ``device=``."""
    name = cpu.__name__
    versions = _versions.setdefault(name, {})
    versions["cpu"] = cpu

    @wraps(cpu)
    def choose(*args: Any, device: str = "cpu", **kwargs: Any) -> Any:
        if device not in versions:
            raise ValueError(f"device={device!r} has no version of {name!r} yet; use device='cpu'.")
        return versions[device](*args, **kwargs)

    return choose


def runs_on(device: str) -> Callable[[Callable], Callable]:
    """Register a function as the version of the primitive of the same name on ``device``."""

    def register(version: Callable) -> Callable:
        _versions.setdefault(version.__name__, {})[device] = version
        return version

    return register


def primitives() -> dict[str, list[str]]:
    """Return the primitives loaded so far and the devices that each has a version for."""
    return {name: sorted(versions) for name, versions in sorted(_versions.items())}
