"""The shell command that installs an extra into the running Python, from the origin of this gpuens.

    from a checkout       python -m pip install -e '/home/me/gpuens[io]'
    from a wheel          pip install '/home/me/gpuens-0.1.0-py3-none-any.whl[io]'
    from a repository     pip install 'gpuens[io] @ git+https://…'
    from an index         pip install 'gpuens[io]'

An index is named only if gpuens came from one. The command uses the pip of the running Python, which may not be the
first pip on the PATH.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from shutil import which
from typing import Any
from urllib.parse import urlsplit

CHECKOUT = Path(__file__).parents[2]


def command(extra: str) -> str:
    """Return the shell command that adds an extra, such as "io", to this installation."""
    return f"{_installer()} {_requirement(extra)}"


def command_for(package: str) -> str:
    """Return the shell command that installs a package that is not part of any extra."""
    return f"{_installer()} {package}"


def _installer() -> str:
    if find_spec("pip") is None:  # made by uv
        return f"uv pip install --python {quote(sys.executable)}"
    first = which("pip")
    if first is not None and Path(first).parent == Path(sys.executable).parent:
        return "pip install"
    return f"{quote(sys.executable)} -m pip install"


def _requirement(extra: str) -> str:
    if (CHECKOUT / "pyproject.toml").is_file():
        return f"-e {quote(f'{CHECKOUT}[{extra}]')}"
    origin = _origin()
    url = origin.get("url", "")
    if not url:
        return f"'gpuens[{extra}]'"
    if not url.startswith("file:"):
        repository = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
        return f"'gpuens[{extra}] @ {repository}{url}'"
    from urllib.request import url2pathname

    path = url2pathname(urlsplit(url).path)
    return quote(f"{path}[{extra}]") if Path(path).exists() else f"'.[{extra}]' in a checkout of gpuens"


def _origin() -> dict[str, Any]:
    """Return the installer's record of the origin of gpuens (PEP 610), None if it came from an index."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        noted = distribution("gpuens").read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    return dict(json.loads(noted)) if noted else {}
