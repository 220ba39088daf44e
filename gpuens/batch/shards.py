"""Shards: the jobs of a batch are divided into shards, so that each of several machines runs one shard."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuens.runtime import checks


@dataclass(frozen=True)
class Shard:
    """The jobs of one shard: their positions in the manifest, divided by ``count``, leave the remainder ``index``.

    >>> str(Shard(0, 4))
    '1/4'
    """

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index + 1}/{self.count}"


SLURM = "SLURM_ARRAY_TASK_ID"  # SLURM arrays may begin at any number, but if `of` is given, they must begin at 0

# for each scheduler: environment variable of the index of the shard → environment variable of the number of shards
SCHEDULERS = {
    SLURM: "SLURM_ARRAY_TASK_COUNT",
    "JOB_COMPLETION_INDEX": None,
    "AWS_BATCH_JOB_ARRAY_INDEX": "AWS_BATCH_JOB_ARRAY_SIZE",
    "CLOUD_RUN_TASK_INDEX": "CLOUD_RUN_TASK_COUNT",
    "BATCH_TASK_INDEX": "BATCH_TASK_COUNT",
}


def shard(text: str | None, of: int | None = None, environment: Mapping[str, str] = os.environ) -> Shard | None:
    """Return the shard that "2/8" or "auto" names, or None for all jobs.

    "auto" reads the variables of SLURM arrays, Kubernetes indexed jobs (with ``of``), AWS Batch, Cloud Run and Google
    Batch; without such variables, the result is None.

    >>> str(shard("auto", environment={"AWS_BATCH_JOB_ARRAY_INDEX": "2", "AWS_BATCH_JOB_ARRAY_SIZE": "8"}))
    '3/8'
    """
    if of is not None:
        checks.check_integer(of, "of", minimum=1)
    if text is None:
        if of is not None:
            raise ValueError(f"of={of} is the number of shards; name one of them by shard='auto' or 'i/{of}'.")
        return None
    if text == "auto":
        return _shard_of_scheduler(of, environment)
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text) if isinstance(text, str) else None
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"shard must be 'auto' or i/n with i from 1 to n, such as 2/8, not {checks.shown(text)}.")
    if of not in (None, int(match[2])):
        raise ValueError(f"shard {text!r} is one of {match[2]} shards, but of={of}; leave of out.")
    return Shard(int(match[1]) - 1, int(match[2]))


def _shard_of_scheduler(of: int | None, environment: Mapping[str, str]) -> Shard | None:
    for variable, count in SCHEDULERS.items():
        if variable not in environment:
            continue
        total = of if of is not None else _variable(environment, count)
        if total is None:
            raise ValueError(f"shard 'auto' found {variable}, but not the number of shards; add --of N.")
        index = _variable(environment, variable) or 0
        if variable == SLURM and of is None:
            index = _index_in_slurm(index, total, environment)
        if not 0 <= index < total:
            raise ValueError(
                f"shard 'auto' found {variable}={environment[variable]}, which is not among the {total} shards."
            )
        return Shard(index, total)
    if of is not None:
        raise ValueError(f"shard 'auto' found none of {', '.join(SCHEDULERS)}; give --shard i/{of}.")
    return None


def _index_in_slurm(index: int, count: int, environment: Mapping[str, str]) -> int:
    """Return the position of a task in its SLURM array; raise an error if tasks of the array are missing."""
    first, last, step = (
        _variable(environment, f"SLURM_ARRAY_TASK_{name}") or default
        for name, default in (("MIN", 0), ("MAX", 0), ("STEP", 1))
    )
    if "SLURM_ARRAY_TASK_MAX" in environment and (last - first) // step + 1 != count:
        raise ValueError(
            f"shard 'auto' found {count} array tasks from {first} to {last}, so some are missing; number the array "
            "from 0 and add --of N."
        )
    return (index - first) // step


def _variable(environment: Mapping[str, str], variable: str | None) -> int | None:
    text = environment.get(variable) if variable else None
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,9}", text):
        raise ValueError(f"shard 'auto' found {variable}={text!r}, which is not a whole number.")
    return int(text)
