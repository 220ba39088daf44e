"""Images and files for clouds and batch systems follow their schemas and agree with the command line."""

import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import gpuens
from gpuens import cli
from gpuens.runtime import failures

ROOT = Path(gpuens.__file__).resolve().parents[1]
DOCKER = ROOT / "docker"
DEPLOY = DOCKER / "deploy"
if not DOCKER.is_dir():
    pytest.skip("docker/ is in a checkout only", allow_module_level=True)
yaml = pytest.importorskip("yaml")

SCRIPTS = [*DEPLOY.glob("*.sbatch"), DOCKER / "test-image"]
AGAIN = {failures.TEMPORARY, 128 + 15}  # after these exit codes, another try may succeed
NEVER = {failures.USAGE, failures.REFUSED, failures.SOME_FAILED}


def tool(name):
    """Return the path of a program of the dev extra, or skip the test."""
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    return found or pytest.skip(f"{name} is not installed: pip install 'gpuens[dev]'")


def package(name):
    return pytest.importorskip(name, reason=f"{name} is not installed: pip install 'gpuens[dev]'")


def understood(words):
    """Return the options of a command line of gpuens; fail if the command line is wrong."""
    return cli._parser().parse_args([str(word) for word in words])


def substituted(value):
    """Return a value of compose.yaml with the defaults of its variables."""
    if isinstance(value, list):
        return [substituted(item) for item in value]
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
JOBS = {"cuda": "kubernetes.yaml", "cpu": "kubernetes-cpu.yaml"}  # by their device
JOBS = {device: yaml.safe_load((DEPLOY / name).read_text()) for device, name in JOBS.items()}
AWS = json.loads((DEPLOY / "aws-batch.json").read_text())

# --- all files --------------------------------------------------------------------------------------------------------


def test_files_of_deploy_fit_a_screen():
    sizes = {path.name: len(path.read_text().splitlines()) for path in DEPLOY.iterdir()}
    assert len(sizes) == 5
    assert max(sizes.values()) <= 60


def test_tags_name_this_version_and_none_is_latest():
    files = [path for path in (ROOT / "docs" / "batches.md", *DOCKER.rglob("*")) if path.is_file()]
    texts = {str(path.relative_to(ROOT)): substituted(path.read_text()) for path in files}
    tags = {(Path(name).name, tag) for name, text in texts.items() for tag in re.findall(r"\bgpuens:([\w.-]+)", text)}
    assert {name for name, _ in tags} >= {
        "compose.yaml",
        "kubernetes.yaml",
        "kubernetes-cpu.yaml",
        "aws-batch.json",
        "README.md",
        "batches.md",
    }
    version = re.escape(gpuens.__version__)
    assert [tag for tag in tags if not re.fullmatch(rf"{version}-(cpu|cuda12|cuda13)", tag[1])] == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_pass_shellcheck(path):
    ran = subprocess.run([tool("shellcheck"), path], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


# --- the image --------------------------------------------------------------------------------------------------------


def test_the_dockerfile_passes_hadolint():
    ran = subprocess.run([tool("hadolint"), DOCKER / "Dockerfile"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_image_runs_gpuens_as_a_user_and_checks_its_health():
    text = (DOCKER / "Dockerfile").read_text()
    assert {"cpu", "cuda12", "cuda13"} < set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
    for instruction in ("ENTRYPOINT", "CMD"):
        assert len(re.findall(rf"^{instruction} \[", text, re.MULTILINE)) == 1
    assert re.search(r"^USER \d+:0$", text, re.MULTILINE)
    program, *words = json.loads(re.search(r"^HEALTHCHECK .* CMD (\[.*\])$", text, re.MULTILINE)[1])
    assert program == "gpuens"
    assert understood(words).check


def test_the_image_has_the_files_that_the_wheel_is_made_of():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())
    build = about["tool"]["scikit-build"]
    needed = {"pyproject.toml", about["project"]["readme"], *about["project"]["license-files"]}
    needed |= {*build["wheel"]["packages"], build["cmake"]["source-dir"]}
    assert kept == needed
    extras = set(re.findall(r"--extra (\w+)", (DOCKER / "Dockerfile").read_text()))
    assert extras <= about["project"]["optional-dependencies"].keys()


# --- compose ----------------------------------------------------------------------------------------------------------


def test_compose_follows_its_specification():
    package("check_jsonschema")
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    ran = subprocess.run([*check, DOCKER / "compose.yaml"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(("profile", "suffix"), [("cpu", ""), ("gpu", "-gpu")])
def test_compose_has_a_scheduler_two_workers_and_a_job_for_each_profile(profile, suffix):
    services = {name: each for name, each in COMPOSE["services"].items() if each["profiles"] == [profile]}
    assert services.keys() == {f"scheduler{suffix}", f"worker{suffix}", f"job{suffix}"}
    address = f"tcp://scheduler{suffix}:8786"
    assert services[f"worker{suffix}"]["deploy"]["replicas"] == 2
    assert services[f"worker{suffix}"]["entrypoint"][-1] == address
    options = understood(substituted(services[f"job{suffix}"]["command"]))
    assert (options.scheduler, options.device) == (address, "cuda" if suffix else None)
    for service in services.values():
        assert service["read_only"]
        assert set(service.get("depends_on", ())) < services.keys()
        assert ("cuda" in service["image"]) == bool(suffix)


# --- Kubernetes -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=JOBS)
def job(request):
    return JOBS[request.param]


@pytest.fixture
def pod(job):
    return job["spec"]["template"]["spec"]


@pytest.fixture
def container(pod):
    return pod["containers"][0]


def test_the_kubernetes_job_follows_its_schema(job):
    kubernetes_validate = package("kubernetes_validate")
    kubernetes_validate.validate(job, "1.31", strict=True)


def action_of(job, code):
    """Return the action of the first rule of the pod failure policy that applies to an exit code."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    for rule in job["spec"]["podFailurePolicy"]["rules"]:
        condition = rule.get("onExitCodes", {})
        if condition:
            assert (condition["containerName"], condition["operator"]) == (container["name"], "In")
            assert condition["values"] == sorted(condition["values"])  # the server demands this order
        if code in condition.get("values", ()):
            return rule["action"]
    return None


def test_kubernetes_tries_again_what_may_succeed_and_nothing_else(job, pod):
    assert {action_of(job, code) for code in AGAIN} == {"Count"}
    assert action_of(job, failures.USAGE) == "FailJob"
    assert {action_of(job, code) for code in NEVER - {failures.USAGE}} == {"FailIndex"}
    first = job["spec"]["podFailurePolicy"]["rules"][0]
    assert (first["action"], first["onPodConditions"][0]["type"]) == ("Ignore", "DisruptionTarget")
    assert pod["restartPolicy"] == "Never"  # a pod failure policy requires this value
    assert job["spec"]["backoffLimitPerIndex"] > 0  # the action FailIndex requires this limit


@pytest.mark.parametrize("device", JOBS)
def test_each_pod_of_kubernetes_does_its_shard_on_its_device(device):
    job = JOBS[device]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    options = understood(container["args"])
    assert (options.shard, options.of) == ("auto", job["spec"]["completions"])
    assert job["spec"]["completionMode"] == "Indexed"
    assert container["resources"]["limits"].get("nvidia.com/gpu", 0) == (device == "cuda")
    assert re.search(rf"-{device}[0-9]*$", container["image"])
    places = {mount["mountPath"] for mount in container["volumeMounts"]}
    for path in (options.manifest, options.out, options.heartbeat):
        assert f"/{Path(path).parts[1]}" in places  # the root file system is read-only
    program, *words = container["startupProbe"]["exec"]["command"]
    assert program == "gpuens"
    assert (understood(words).check, understood(words).device or "cpu") == (True, device)


def test_kubernetes_kills_what_no_longer_writes_its_heartbeat(container, tmp_path):
    heartbeat = understood(container["args"]).heartbeat
    file = tmp_path / "heartbeat"
    shell, option, line = container["livenessProbe"]["exec"]["command"]
    assert heartbeat in line

    def lives():
        return subprocess.run([shell, option, line.replace(heartbeat, str(file))], capture_output=True).returncode == 0

    assert not lives()
    file.touch()
    assert lives()
    os.utime(file, times=(time.time() - 180,) * 2)
    assert not lives()


# --- AWS Batch --------------------------------------------------------------------------------------------------------


def test_the_aws_job_definition_follows_its_service():
    package("botocore")
    loaders, model, validate = map(importlib.import_module, ("botocore.loaders", "botocore.model", "botocore.validate"))
    service = model.ServiceModel(loaders.Loader().load_service_model("batch", "service-2"))
    shape = service.operation_model("RegisterJobDefinition").input_shape
    report = validate.ParamValidator().validate(AWS, shape)
    assert not report.has_errors(), report.generate_report()


def test_aws_tries_again_what_may_succeed_and_nothing_else():
    rules = AWS["retryStrategy"]["evaluateOnExit"]
    assert len(rules) <= 5  # AWS Batch allows five rules
    by_code = {rule["onExitCode"]: rule["action"] for rule in rules if "onExitCode" in rule}
    assert {by_code.get(str(code), by_code["*"]) for code in AGAIN} == {"RETRY"}
    assert {by_code.get(str(code), by_code["*"]) for code in NEVER} == {"EXIT"}
    assert "onExitCode" in rules[-1]  # the last rule needs an exit code, and a lost host has none


def test_aws_runs_a_shard_of_the_manifest():
    command = AWS["containerProperties"]["command"]
    named = {word.removeprefix("Ref::") for word in command if word.startswith("Ref::")}
    assert named == AWS["parameters"].keys()
    options = understood([AWS["parameters"].get(word.removeprefix("Ref::"), word) for word in command])
    assert (options.shard, options.out) == ("auto", AWS["parameters"]["out"])
    kinds = {need["type"]: need["value"] for need in AWS["containerProperties"]["resourceRequirements"]}
    assert kinds["GPU"] == "1"


# --- SLURM ------------------------------------------------------------------------------------------------------------

FAKES = {
    "srun": 'echo "srun $*" >>"$LOG"; exec "$@"',
    "scontrol": 'echo "scontrol $*" >>"$LOG"',
    "gpuens": 'echo "gpuens $*" >>"$LOG"; [[ $1 == info ]] && exit "${CHECK:-0}"; exit "${BATCH:-0}"',
    "dask": """echo "dask $*" >>"$LOG"
        [[ $1 == scheduler ]] && echo '{"address": "tcp://10.0.0.1:8786"}' >"$3"
        echo "$$" >>"$PIDS"
        exec sleep 60""",
}


def submitted(script, folder, *words, **environment):
    """Run a batch script with stand-ins for SLURM's programs; return the exit code and the recorded calls."""
    for name, text in FAKES.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    log = folder / "log"
    log.write_text("")
    environment |= {"LOG": str(log), "PIDS": str(folder / "pids"), "SLURM_JOB_ID": "17"}
    environment["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", DEPLOY / script, *words], env=os.environ | environment, cwd=folder, capture_output=True, timeout=60
    )
    return ran.returncode, log.read_text().splitlines()


linux = pytest.mark.skipif(sys.platform != "linux", reason="scripts for Linux clusters")


@linux
@pytest.mark.parametrize("code", [0, *sorted(AGAIN | NEVER)])
def test_slurm_tries_again_what_may_succeed_and_nothing_else(tmp_path, code):
    ended, notes = submitted("slurm.sbatch", tmp_path, "jobs.yaml", "out", BATCH=str(code))
    assert (ended, "scontrol requeue 17" in notes) == ((0, True) if code in AGAIN else (code, False))
    words = next(note.split()[1:] for note in notes if note.startswith("gpuens batch"))
    options = understood(words)
    assert (options.manifest, options.out, options.shard) == ("jobs.yaml", "out", "auto")
    ended, notes = submitted("slurm.sbatch", tmp_path, "jobs.yaml", "out", BATCH=str(code), SLURM_RESTART_COUNT="5")
    assert (ended, [note for note in notes if "requeue" in note]) == (code, [])


@linux
def test_slurm_starts_no_batch_on_a_dead_gpu(tmp_path):
    ended, notes = submitted("slurm.sbatch", tmp_path, "jobs.yaml", "out", CHECK="75")
    others = [note for note in notes if not note.startswith("srun")]
    assert (ended, others) == (0, ["gpuens info --check --device cuda", "scontrol requeue 17"])


def test_slurm_ends_tasks_in_time_and_lets_nodes_fail():
    directives = re.findall(r"^#SBATCH (--[\w-]+)(?:=(\S+))?$", (DEPLOY / "slurm.sbatch").read_text(), re.MULTILINE)
    options = dict(directives)
    assert options["--signal"] == "TERM@60"
    assert {"--requeue", "--array", "--gres", "--time"} <= options.keys()


@linux
def test_workers_find_their_scheduler_by_a_file_and_nothing_is_left(tmp_path):
    ended, notes = submitted("dask-cuda.sbatch", tmp_path, "labels.zarr", "out.npy", "-k", "7", BATCH="3")
    assert ended == 3
    options = understood(next(note.split()[1:] for note in notes if note.startswith("gpuens")))
    assert (options.labels, options.output, options.n_clusters) == (["labels.zarr"], "out.npy", 7)
    assert (options.scheduler, options.device) == ("tcp://10.0.0.1:8786", "cuda")
    file = f"{tmp_path}/gpuens-dask-17/scheduler.json"
    assert any(note.startswith("dask cuda worker") and file in note for note in notes)
    assert not os.path.exists(os.path.dirname(file))
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
