"""``python -m gpuens`` is the command ``gpuens``."""

import sys

from gpuens.cli import main

if __name__ == "__main__":
    sys.exit(main())
