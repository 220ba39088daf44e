"""The shape of the package: allowed imports, the cost of importing, and a complete, documented public interface."""

import ast
import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from conftest import NOT_HERE, close_figures

import gpuens
from gpuens.methods.base import Method
from gpuens.runtime import checks

ROOT = Path(gpuens.__file__).parent

# layers from top to bottom: a module may import from its own layer and from the layers below it
LAYERS = [
    {"__main__", "cli", "batch", "report", "sc"},
    {"workflows"},
    {"methods", "generate", "distributed", "datasets", "io", "plotting"},
    {"evidence"},
    {"neighbors"},
    {"partition", "reduction", "similarity", "metrics"},
    {"kmeans", "contingency"},
    {"labels"},
    {"runtime"},
]
DEPTH = {name: depth for depth, layer in enumerate(LAYERS) for name in layer}

STRANGERS = [*permutations(("similarity", "partition")), ("reduction", "similarity"), ("reduction", "partition")]

ONLY_IN = {
    "cupy": "runtime.gpu",
    "cupyx": "runtime.gpu",
    "dask": "distributed",
    "distributed": "distributed",
    "igraph": "generate.leiden_partition",
    "pylibcugraph": "generate.leiden_partition",
    "mtkahypar": "partition.mtkahypar_process",
    "pymetis": "partition.metis",
}

MODULES = {
    "gpuens" + "".join(f".{part}" for part in path.relative_to(ROOT).with_suffix("").parts if part != "__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}


def home(module):
    """Return the name of the top-level module or package of gpuens that contains a module."""
    return module.split(".")[1]


def imports(path, modules=None):
    """Return the names of all modules that a file imports, at any place in it; ``modules`` lists our own modules."""
    ours = MODULES if modules is None else modules
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} line {node.lineno}: imports are absolute"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & ours.keys()) | ({node.module} if inner - ours.keys() else set())
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            found |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}
    return found


IMPORTS = {module: imports(path) for module, path in MODULES.items()}
EDGES = sorted(
    (module, other) for module, found in IMPORTS.items() for other in found if other in MODULES and other != "gpuens"
)


# --- imports between layers -------------------------------------------------------------------------------------------


def test_every_module_has_a_layer():
    assert {home(module) for module in MODULES if module != "gpuens"} <= DEPTH.keys()


def test_imports_go_one_way():
    assert len(EDGES) > 50
    inner = [edge for edge in EDGES if edge[0] != "gpuens"]
    upwards = [edge for edge in inner if DEPTH[home(edge[0])] > DEPTH[home(edge[1])]]
    assert upwards == []


def test_similarity_partition_and_reduction_do_not_know_each_other():
    assert [edge for edge in EDGES if edge[0] != "gpuens" and (home(edge[0]), home(edge[1])) in STRANGERS] == []


def test_no_circle():
    # a package imports its modules; the modules import each other, but never the package, which is still loading
    graph = {module: {other for m, other in EDGES if m == module} for module in MODULES}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


@pytest.mark.parametrize(("package", "keeper"), ONLY_IN.items())
def test_only_one_module_names(package, keeper):
    for module, path in MODULES.items():
        if f"{module}.".startswith(f"gpuens.{keeper}."):
            continue
        assert package not in {name.split(".")[0] for name in IMPORTS[module]}, module
        # expressions in these modules must not name the package either
        assert package not in names_in(path), module


@cache
def names_in(path):
    return {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}


def test_the_reader_of_imports_sees_all_of_them(tmp_path):
    path = tmp_path / "example.py"
    path.write_text(
        "import gpuens.io\nfrom gpuens.runtime import kernels\nfrom gpuens import nothing\n"
        "from gpuens.partition import average, cut\n"
        "def f():\n    import cupy.cuda as c\n    from importlib import import_module as i\n    i('x')\n"
        "    import importlib\n    importlib.import_module('dask.array')\n    __import__('pandas')\n"
    )
    modules = dict.fromkeys(
        ["gpuens", "gpuens.io", "gpuens.runtime.kernels", "gpuens.partition", "gpuens.partition.average"]
    )
    assert imports(path, modules) == {
        *("gpuens", "gpuens.io", "gpuens.runtime.kernels", "gpuens.partition", "gpuens.partition.average"),
        *("cupy.cuda", "importlib", "dask.array", "pandas"),
    }


def test_a_check_serves_two_at_least():
    """Each check in checks.py has two callers or more: a helper for a single module belongs in that module."""
    texts = {module: path.read_text() for module, path in MODULES.items()}
    # only uses count, not definitions
    texts["gpuens.runtime.checks"] = re.sub(r"^def \w+", "", texts["gpuens.runtime.checks"], flags=re.M)
    for name in (name for name, thing in vars(checks).items() if inspect.isfunction(thing) and name[0] != "_"):
        assert sum(bool(re.search(rf"\b{name}\b", text)) for text in texts.values()) > 1, name


def test_warnings_are_given_by_one_function():
    """One function finds the caller's line; a stacklevel counted by hand becomes wrong with the next change."""
    found = [module for module, path in MODULES.items() if "warnings.warn" in path.read_text()]
    assert found == ["gpuens.runtime.checks"]


# --- cost of importing ------------------------------------------------------------------------------------------------

HEAVY = {"scipy", "sklearn", "pandas", "cupy", "dask", "matplotlib", "psutil", "pymetis", "tqdm"}


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import gpuens", HEAVY | {"numpy"}),
        ("import gpuens; dir(gpuens); gpuens.__version__", HEAVY | {"numpy"}),
        ("from gpuens import Ensemble", HEAVY),
        ("import numpy, gpuens; gpuens.Ensemble(numpy.eye(4, 2, dtype=int))", HEAVY),
        ("from gpuens import methods", {"cupy", "dask", "matplotlib", "anndata"}),
        ("from gpuens import plotting", HEAVY),
        ("from gpuens import cli; cli._parser()", HEAVY | {"numpy"}),
    ],
)
def test_import_loads_no_more_than_it_needs(statement, unwanted):
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in ran.stdout.split()} & unwanted == set()


def test_every_module_can_be_imported_under_another_name():
    """A function may take the place of the module of the same name, but of no other module.

    The function `gpuens.methods` hides the modules of its package from this form of import.
    """
    code = """
import sys
for name in sys.stdin.read().split():
    space = {}
    exec(f"import {name} as found", space)
    found, module = space["found"], sys.modules[name]
    assert found in (module, getattr(module, name.split(".")[-1], None)), name
"""
    names = [module for module in MODULES if not re.search(r"^gpuens\.methods\.|\.__main__$", module)]
    subprocess.run([sys.executable, "-c", code], input="\n".join(names), text=True, check=True)


# --- the public interface ---------------------------------------------------------------------------------------------


# bases, and estimators that take any method
FRAMES = [f"gpuens.methods.{name}" for name in ("base", "combination", "shared_names", "spatial")]


def estimators():
    """Return every public estimator class that a module of gpuens.methods defines."""
    files = [importlib.import_module(module) for module in MODULES if module.startswith("gpuens.methods.")]
    classes = [thing for file in files for thing in vars(file).values() if inspect.isclass(thing)]
    found = {kind for kind in classes if issubclass(kind, Method) and not kind.__name__.startswith("_")}
    return {kind for kind in found if kind.__module__ not in FRAMES}


def test_every_estimator_is_listed():
    listed = gpuens.methods()
    assert set(listed.values()) == estimators() - {gpuens.Spatial}  # Spatial is a frame around any of them
    for key, estimator in listed.items():
        assert key.replace("-", "") == estimator.__name__.lower()
        assert getattr(gpuens, estimator.__name__) is estimator
        assert estimator.__name__ in gpuens.__all__


@pytest.mark.parametrize("name", gpuens.__all__)
def test_every_public_name_is_there_and_documented(name):
    thing = getattr(gpuens, name)
    if name != "__version__":
        assert inspect.getdoc(thing), f"{name} has no docstring"
        assert name in dir(gpuens)


@pytest.mark.parametrize("name", [name for name in gpuens.__all__ if inspect.ismodule(getattr(gpuens, name))])
def test_a_public_module_shows_what_is_public_in_it(name):
    module = getattr(gpuens, name)
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gpuens.nothing


@pytest.mark.parametrize("module", [module for module in MODULES if not module.endswith("__main__")])
def test_docstrings_and_their_examples(module, capsys, own_registry):
    module = importlib.import_module(module)
    assert module.__doc__, "a module says what it is for"
    if any(gpuens.methods()[name].__module__ == module.__name__ for name in NOT_HERE):
        pytest.skip("its package is not installed")
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(module):
        runner.run(example)
        close_figures()  # open figures would appear in the drawings of the next example
    assert runner.failures == 0, capsys.readouterr().out


def test_the_version_is_written_once_and_types_are_shipped():
    about = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())
    assert "version" not in about["project"]
    assert "version" in about["project"]["dynamic"]
    place = ROOT.parent / about["tool"]["scikit-build"]["metadata"]["version"]["input"]
    assert re.findall(r'^__version__ = "(.*)"$', place.read_text(), re.MULTILINE) == [gpuens.__version__]
    assert (ROOT / "py.typed").exists()  # py.typed lies in the package, all of whose files go into the wheel


def test_type_checkers_and_editors_see_all_public_names():
    told = [node for node in ast.parse((ROOT / "__init__.pyi").read_text()).body if isinstance(node, ast.ImportFrom)]
    assert {alias.asname for node in told for alias in node.names} == {*gpuens.__all__} - {"__version__"}
    for node in told:
        home = importlib.import_module(node.module)
        assert all(getattr(gpuens, alias.asname) is getattr(home, alias.name) for alias in node.names), node.module


# public functions whose result has no type annotation, with the reason
ANY = {
    "io.reading.read_features": "an array, a DataFrame or a sparse matrix, as the file has it",
    "distributed.tasks.Tasks.task": "Dask's delayed value",
    "distributed.tasks.Tasks.tree": "Dask's delayed value",
    "distributed.tasks.Tasks.everywhere": "a value, or what Dask calls it",
    "distributed.tasks.Tasks.somewhere": "a value, or what Dask calls it",
}


def public_functions():
    """Return public functions and methods by name, including the methods of classes that public functions return."""
    left = [getattr(gpuens, name) for name in gpuens.__all__]
    found, classes = {}, set()
    while left:
        thing = inspect.unwrap(left.pop())  # a primitive is a wrapper of its function for the CPU
        module = getattr(thing, "__module__", None) or ""
        if inspect.ismodule(thing):
            own = [name for name, it in vars(thing).items() if getattr(it, "__module__", "") == thing.__name__]
            left += [getattr(thing, name) for name in getattr(thing, "__all__", own) if name[0] != "_"]
        elif inspect.isfunction(thing) and module.startswith("gpuens."):
            found[f"{module.removeprefix('gpuens.')}.{thing.__qualname__}"] = thing
            left.append(inspect.get_annotations(thing).get("return"))
        elif inspect.isclass(thing) and module.startswith("gpuens.") and thing not in classes:
            classes.add(thing)
            left += thing.__bases__
            for name, it in vars(thing).items():
                if name[0] != "_" or name == "__call__":
                    left.append(getattr(it, "fget", None) or getattr(it, "func", None) or getattr(it, "__func__", it))
    return found


def test_public_functions_name_what_they_return():
    found = public_functions()
    some = {"workflows.cluster.cluster", "workflows.choice.Choice.table", "labels.rows.Rows.sum", "metrics.nmi"}
    assert some <= found.keys()
    unnamed = {name for name, one in found.items() if inspect.get_annotations(one).get("return") in (Any, "Any")}
    assert unnamed == ANY.keys()


# --- README and settings of the tests ---------------------------------------------------------------------------------


def test_readme_names_files_that_are_there_and_an_index_gets_none_of_them():
    """The README on a package index has neither pictures nor relative links, because an index cannot follow them."""
    checkout = ROOT.parent
    target = re.compile(r"\]\((?!https?://|#)([^)]*)\)")
    text = (checkout / "README.md").read_text()
    paths = target.findall(text)
    assert len(paths) > 5
    assert [path for path in paths if not (checkout / path).exists()] == []
    ran = subprocess.run([checkout / ".ci/index_readme"], input=text, capture_output=True, text=True, check=True)
    text = ran.stdout
    assert target.findall(text) == []
    assert "![" not in text
    assert "est = ge.LWEA(n_clusters=10, theta=0.4).fit(labels)" in text


def test_the_tests_leave_a_plugin_for_benchmarks_alone(tmp_path):
    """The plugin pytest-benchmark 5.1 warns if xdist is in use. As warnings are errors here, pytest would end."""
    (tmp_path / "ends_pytest.py").write_text("raise SystemExit('loaded')")
    entry = tmp_path / "ends_pytest-1.dist-info"
    entry.mkdir()
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: ends-pytest\nVersion: 1\n")
    (entry / "entry_points.txt").write_text("[pytest11]\nbenchmark = ends_pytest\n")
    path = os.pathsep.join(filter(None, [str(tmp_path), str(ROOT.parent), os.environ.get("PYTHONPATH")]))
    nothing = tmp_path / "test_nothing.py"
    nothing.write_text("def test_nothing(): pass")
    command = [sys.executable, "-m", "pytest", "-c", ROOT.parent / "pyproject.toml", "--co", "-q", nothing]
    collected = [
        subprocess.run([*command, *more], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
        for more in ([], ["-o", "addopts="])
    ]
    assert collected[0].returncode == 0, collected[0].stderr
    assert "loaded" in collected[1].stderr


def test_every_test_file_has_a_name_of_its_own():
    """pytest imports test files by their names alone, and tests/native/check.py finds them by their names."""
    names = [path.name for path in (ROOT.parent / "tests").rglob("test_*.py")]
    assert [name for name in names if names.count(name) > 1] == []
    code = "import runpy, sys; sys.argv = ['check.py']; runpy.run_path('tests/native/check.py')"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT.parent, check=True)
