"""Parts of a release: equal version numbers, valid GitHub workflows, and a script that refuses mistakes."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpuens

ROOT = Path(__file__).parents[2]
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.dependabot": ".github/dependabot.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/[bi]*.yml",
}
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("schema", SCHEMAS)
def test_github_takes_its_files(schema):
    pytest.importorskip("check_jsonschema", reason="pip install check-jsonschema")
    files = sorted(ROOT.glob(SCHEMAS[schema]))
    assert files
    code, said = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files)
    assert code == 0, said


def test_workflows_pin_actions_and_ask_for_no_more_than_they_need():
    for path in ROOT.glob(".github/workflows/*.yml"):
        text = path.read_text()
        assert "\npermissions: {}\n" in text, path.name
        for action in re.findall(r"uses: (\S+)", text):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), f"{path.name}: {action}"


def test_all_kinds_of_files_are_fuzzed():
    kinds = re.search(r"kind: \[(.*)\]", (ROOT / ".github/workflows/fuzz.yml").read_text())[1].split(", ")
    assert kinds == sorted(path.name for path in (ROOT / "tests/corpus").iterdir())


def test_pythons_that_are_named_are_those_that_are_tested():
    named = {line.split(" :: ")[-1] for line in ABOUT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)}
    tested = set(re.findall(r'"(3\.\d+)"', (ROOT / ".github/workflows/test.yml").read_text()))
    assert named == tested


def test_the_version_and_the_requirements_are_the_same_everywhere():
    recipe = (ROOT / ".ci/conda/recipe.yaml").read_text()
    assert f'version: "{gpuens.__version__}"' in recipe
    assert f"\nversion: {gpuens.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    needs = {need.partition(";")[0].replace(">", " >", 1) for need in ABOUT["dependencies"]}
    assert needs == set(re.findall(r"- (\S+ >=\S+)", recipe))


def test_the_conda_recipe_is_a_package_for_each_python():
    rattler_build = pytest.importorskip("rattler_build", reason="pip install py-rattler-build")
    recipe = rattler_build.Stage0Recipe.from_file(ROOT / ".ci/conda/recipe.yaml")
    tools = {"cxx_compiler": ["gxx"], "c_stdlib": ["sysroot"]}
    pythons = rattler_build.VariantConfig({"python": ["3.11.*", "3.13.*"], **tools})
    packages = [variant.recipe.to_dict() for variant in recipe.render(pythons)]
    assert {package["package"]["version"] for package in packages} == {gpuens.__version__}
    assert sorted(package["build"]["string"][:5] for package in packages) == ["py311", "py313"]


def test_a_release_without_a_date_or_of_another_version_is_refused_before_any_work():
    code, said = run(ROOT / ".ci/release", "--version", "99.0")
    assert (code, said) == (1, f"release: the tag says 99.0, gpuens/__init__.py says {gpuens.__version__}.\n")
    if "(unreleased)" in (ROOT / "CHANGELOG.md").read_text():
        code, said = run(ROOT / ".ci/release")
        assert (code, said) == (1, f"release: CHANGELOG.md has no line '## {gpuens.__version__} (YYYY-MM-DD)'.\n")


def test_a_check_is_left_out_until_a_file_of_its_own_changes(tmp_path):
    for name, text in {
        "kernels/rows.cu": "rows",
        "kernels/common/rows.h": "common",
        "gpuens/cli/run.py": "run",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".ci").mkdir()
    script = tmp_path / ".ci" / "changed"
    script.write_bytes((ROOT / ".ci" / "changed").read_bytes())

    def has_to_run():
        return run(sys.executable, script, "check-kernels")[0] == 0

    assert has_to_run()
    assert run(sys.executable, script, "check-kernels", "--passed") == (0, "")
    (tmp_path / "gpuens/cli/run.py").write_text("another run")
    assert not has_to_run()
    (tmp_path / "kernels/common/rows.h").write_text("another common")
    assert has_to_run()
