"""libFuzzer on the readers of files: mutations of tests/corpus that reach new lines of Python, with Atheris.

    pip install atheris
    python tests/fuzz_readers.py csv -max_total_time=60

runs the readers of one kind of file (a folder of tests/corpus) for a minute; further options are libFuzzer's. A file
that breaks a reader is written to the current folder as "crash-…"; once mended, it belongs into tests/corpus.
"""

import os
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

READERS = [
    "gpuens.io",
    "gpuens.batch",
    "gpuens.labels",
    "gpuens.methods",
]  # packages with counters; others slow the start
with atheris.instrument_imports(include=READERS):
    from fuzz_files_worker import CORPUS, FOLDERS, Trap, file_of, judged, mutated

LIMITS = ["-timeout=20", "-rss_limit_mb=4096", "-max_len=16384"]  # seconds, megabytes, bytes


def main(folder, *options):
    kind = FOLDERS[folder]

    def mutate(data, most, seed):
        return mutated(data, kind, lambda part: atheris.Mutate(part, min(len(part) + 64, most)))[:most]

    here = os.getcwd()
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as new_files:
        os.mkdir(Path(place, "place"))
        trap = Trap(place)

        def attempt(data):
            path = file_of(kind, place)
            path.write_bytes(data)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                judged(path, kind, trap, commands=False)

        options = [f"-artifact_prefix={here}/", *LIMITS, *options, new_files, str(CORPUS / folder)]
        atheris.Setup([sys.argv[0], *options], attempt, custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
