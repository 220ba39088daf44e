"""``gpuens demo``: cluster a real data set, and show a table of scores and a picture."""

import argparse


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default="digits", help="name of a data set, or a file with X and y (digits)")
    parser.add_argument("--output-dir", default=".", metavar="DIR", help="folder of the picture (.)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the k-means (0)")


def demo(args: argparse.Namespace) -> None:
    from gpuens.workflows.demo import demo

    demo(args.data, args.output_dir, seed=args.seed, say=lambda line: print(line, flush=True))
