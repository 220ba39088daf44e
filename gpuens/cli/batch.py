"""``gpuens batch``: run the jobs that a manifest lists, and continue with the remaining jobs after a stop."""

import argparse
import os

from gpuens.cli.process import print_json
from gpuens.runtime.checks import counted

MOST_FAILED = 20  # maximum number of failed jobs that the printed summary names


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Repeat the command to run the remaining jobs. Exit codes: 0 all done; 2 refused command or manifest; 3 "
        "refused inputs; 4 some jobs failed; 75 failures that may not occur at the next try; 130 after Ctrl-C, 143 "
        "after SIGTERM, with the unfinished job rolled back."
    )
    parser.add_argument(
        "manifest", nargs="?", metavar="MANIFEST", help="yaml, json, jsonl or csv file or URI; - is jsonl on stdin"
    )
    parser.add_argument("--out", metavar="DIR", help="folder or URI of the results (MANIFEST without ending, .results)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="jobs at once, each on its own GPU if any (1)")
    parser.add_argument(
        "--shard",
        metavar="I/N",
        help="run every N-th job, beginning with the I-th; auto: read both from the variables of SLURM, Kubernetes, "
        "AWS Batch, Cloud Run or Google Batch",
    )
    parser.add_argument("--of", type=int, metavar="N", help="number of shards, if the scheduler does not provide it")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="skip finished jobs (default)")
    again.add_argument("--force", action="store_true", help="run all jobs again")
    parser.add_argument("--keep-going", action="store_true", help="continue after a failure")
    parser.add_argument(
        "--checksum", action="store_true", help="compare inputs by their contents, not by size and time"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only list the jobs, with the forecast memory, and the jobs that would fail",
    )
    parser.add_argument("--report", action="store_true", help="write a page with pictures for each job")
    parser.add_argument("--device", default="auto", help="device of jobs that name none: auto, cpu or cuda (auto)")
    parser.add_argument("--heartbeat", metavar="FILE", help="file to write every 5 seconds, for liveness probes")
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="format of the lines on stderr (text)"
    )
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of manifests")


def batch(args: argparse.Namespace) -> int:
    from gpuens import batch

    if args.schema:
        print_json(batch.schema())
        return 0
    if args.manifest is None:
        raise ValueError("MANIFEST is needed: name a file; see gpuens batch --help.")
    out = _default_out(args.manifest) if args.out is None else args.out
    settings = {name: getattr(args, name) for name in ("shard", "of", "force", "checksum", "report", "device")}
    if args.dry_run:
        print(batch.forecast(args.manifest, out, **settings))
        return 0
    outcome = batch.run(
        args.manifest,
        out,
        **settings,
        jobs=args.jobs,
        keep_going=args.keep_going,
        heartbeat=args.heartbeat,
        log="json" if args.log_format == "json" else None if args.quiet else "text",
    )
    if not args.quiet:
        pending = sum(row["status"] == "pending" for row in outcome.jobs)
        counts = {"done": outcome.done, "done before": outcome.already, "failed": outcome.failed, "pending": pending}
        print(
            f"{counted(len(outcome.jobs), 'job')}: " + ", ".join(f"{n:,} {status}" for status, n in counts.items() if n)
        )
        failed = [row for row in outcome.jobs if row["status"] == "failed"]
        for row in failed[:MOST_FAILED]:
            print(f"failed: {row['id']}: {row['error']}")
        if len(failed) > MOST_FAILED:
            print(f"failed: {len(failed) - MOST_FAILED:,} more, see summary.csv")
        if failed and pending and not args.keep_going:
            print("stopped at the first failure; --keep-going continues after failures")
        print(f"written: {out.rstrip('/')}/summary.csv")
    return outcome.exit_code


def _default_out(manifest: str) -> str:
    """Return the default folder of the results of a manifest; for jobs.yaml, for example, it is jobs.results."""
    if manifest == "-":
        raise ValueError("--out is needed for a manifest on stdin; name a folder.")
    return f"{os.path.splitext(manifest)[0]}.results"
