"""Repeat the experiments of a paper; write the results, beside the numbers that the paper prints, into bench/results.

    python bench/papers PAPER --data DIR [--only PART ...] [--sets NAME ...] [--runs N] [--output FILE.json]
    python bench/papers PAPER --quick

DIR (or GPUENS_DATA) holds the data sets. Results are written after each row; a part of the same machine, versions and
commit goes on where it was stopped, --only repeats or adds some parts, and `--only` with none writes the page again.
"""

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import parts

from papers import FOLDER, page_of

PAPERS = sorted(path.parent.name for path in FOLDER.glob("*/page.toml"))
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn")


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in PAPERS:
        sys.exit(f"{__doc__}\nPAPER: one of {', '.join(PAPERS)}; python bench/papers PAPER --help says what each does.")
    paper = sys.argv.pop(1)
    experiments = importlib.import_module(f"papers.{paper}.experiments")
    options = parse(experiments)
    parts.run(
        paper, options, experiments.PARTS, page_of(paper).markdown, page_of(paper).findings.plot,
        packages=(*PACKAGES, *experiments.PACKAGES), setting={"runs": options.runs},
    )  # fmt: skip


def parse(experiments: Any) -> argparse.Namespace:
    parser = parts.parser(experiments.__doc__, experiments.PARTS, quick="tiny, on what is made up or comes along")
    parser.add_argument("--data", type=Path, help="directory of the data sets (GPUENS_DATA)")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these data sets")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="base clusterings of Covertype (.npy) to take")
    quick, runs = experiments.RUNS
    parser.add_argument("--runs", type=int, help=f"ensembles of each data set ({runs})")
    options = parser.parse_args()
    options.runs = options.runs or (quick if options.quick else runs)
    if options.runs < 2:
        parser.error("--runs must be at least 2: differences are tested over runs")
    return options


if __name__ == "__main__":
    main()
