"""A process of a batch: it reads jobs as lines of JSON on stdin, does them, and writes events and results to stdout."""

import json
import os
import signal
import sys
from typing import IO, Any

from gpuens import failures
from gpuens.batch import execution, stores
from gpuens.batch.job import Job
from gpuens.cli.process import clean_stops


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the runner too, which stops this process in order
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed
    try:
        with clean_stops():
            _serve(sys.stdin, out)
    except KeyboardInterrupt as error:
        return failures.exit_code(error)
    return 0


def _serve(lines: IO[str], out: IO[str]) -> None:
    def say(**facts: Any) -> None:
        print(json.dumps(facts, default=str), file=out, flush=True)

    first = json.loads(lines.readline())
    store = stores.store(first["out"])
    say(ready=True)
    for line in lines:
        task = json.loads(line)
        result = execution.carry_out(
            Job(**task["job"]),
            store,
            first["base"],
            task["fingerprint"],
            lambda event, **facts: say(event=event, facts=facts),
        )
        say(marker=result.marker, code=result.code)


if __name__ == "__main__":
    sys.exit(main())
