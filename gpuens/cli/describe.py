"""``gpuens describe``: properties of the base clusterings in a file, and the forecast memory of each method."""

import argparse
import re
from typing import Any

from gpuens import io
from gpuens.cli.arguments import add_reading_of_labels, add_selection, add_shared, options_of_labels, reading_of_labels
from gpuens.cli.files import aligned, check_inputs
from gpuens.cli.process import print_json
from gpuens.io.shapes import label_shape
from gpuens.labels.shape import ASSUMED_CLUSTERS, LabelShape
from gpuens.methods import REGISTRY
from gpuens.runtime import failures
from gpuens.runtime.checks import counted, human_bytes
from gpuens.runtime.device import memory_budget


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "The memory is the peak of `gpuens run` without --evidence and --report. The order of the time is for G "
        "distinct label rows, M clusterings, C clusters of all clusterings, N objects and k clusters wanted."
    )
    parser.add_argument("labels", nargs="?", metavar="LABELS", help="label file, as for `gpuens run`")
    add_selection(parser)
    parser.add_argument(
        "--shape",
        type=_shape,
        metavar="NxM",
        help="foresee the memory for N objects and M clusterings, such as 20000000x30, without a file; needs -k",
    )
    parser.add_argument(
        "-k",
        "--n-clusters",
        type=int,
        metavar="K",
        help="clusters of the consensus (median of the numbers of clusters of the base clusterings)",
    )
    parser.add_argument("--no-forecasts", action="store_true", help="leave out the forecasts for the methods")
    add_reading_of_labels(parser)
    add_shared(parser, "device", "json")


def describe(args: argparse.Namespace) -> None:
    if (args.labels is None) == (args.shape is None):
        raise ValueError("give either LABELS or --shape NxM.")
    if args.shape is not None:
        if args.n_clusters is None:
            raise ValueError("--shape needs -k, the number of clusters of the consensus.")
        if options := [*options_of_labels(args), *["--no-forecasts"] * args.no_forecasts]:
            raise ValueError(f"{options[0]} is for LABELS; leave it out with --shape.")

        shape = LabelShape(*args.shape)
        _foresee_alone(args, shape, str(shape))
        return
    check_inputs(args.labels)
    from gpuens.workflows import describe as description

    with failures.stage("read", f"reading {args.labels}"):
        reading = reading_of_labels(args)
        file_shape = label_shape(args.labels, **reading)
        try:
            description.refuse_to_group(file_shape, "a description")
        except MemoryError as error:
            _foresee_alone(args, file_shape, f"{args.labels}: {file_shape}; the labels are not read, because {error}")
            return
        labels = io.read_label_file(args.labels, **reading).ensemble
    with failures.stage("describe", "describing the clusterings"):
        result = description.describe(labels, args.n_clusters, forecasts=False, device=args.device)
        if not args.no_forecasts:
            shape = result.shape
            if file_shape is not None:
                shape = shape._replace(read_bytes=file_shape.read_bytes, mapped_bytes=file_shape.mapped_bytes)
            result.methods = description.foresee_methods(shape, result.k, args.device)
    if args.json:
        print_json({"input": args.labels, **result.to_dict()})
        return
    print(f"{args.labels}: {result.summary}")
    heads = ["", "clusters", "smallest", "largest", "missing", "agreement"]
    print(aligned([heads, *map(_cells, result.columns)]))
    for column in result.columns:
        if column["odd"]:
            print(f"{column['name']} differs from the others: {column['odd']}")
        if column["same_as"] is not None:
            print(f"{column['name']} equals {column['same_as']}, so this clustering counts more than once")
    if result.methods:
        print()
        _print_methods(result.methods, result.k)


def _shape(text: str) -> tuple[int, int]:
    """Read the numbers of objects and of clusterings from a text such as 20000000x30."""
    match = re.fullmatch(r"([1-9][0-9_,]{0,20})[x×]([1-9][0-9]{0,8})", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"shapes are written OBJECTSxCLUSTERINGS, such as 20000000x30, not {text!r}")
    return int(re.sub("[_,]", "", match[1])), int(match[2])


def _foresee_alone(args: argparse.Namespace, shape: Any, about: str) -> None:
    """Print forecasts for labels that are not read; ``about`` is the first line."""
    from gpuens.methods.forecast import ASSUMED_K
    from gpuens.workflows import describe as description

    k = args.n_clusters or ASSUMED_K
    methods = description.foresee_methods(shape, k, args.device)
    if args.json:
        facts = {"n_objects": shape.n_objects, "n_clusterings": shape.n_clusterings, "k": k}
        print_json({"input": args.labels, **facts, "methods": description.values_of(methods)})
        return
    print(about)
    print(f"assumed: all label rows differ, and each clustering has {ASSUMED_CLUSTERS} clusters")
    _print_methods(methods, k)


def _print_methods(methods: dict[str, Any], k: int) -> None:
    """Print the forecast memory and the order of the time of each method, or the reason why there is no forecast."""
    peaks = sorted((forecast.memory, name) for name, forecast in methods.items() if forecast.memory is not None)
    print(f"methods for {counted(k, 'cluster')}; {human_bytes(memory_budget())} may be used")
    lines = [[name, human_bytes(memory), REGISTRY.load(name).cost] for memory, name in peaks]
    print(aligned([["", "peak memory", "order of the time"], *lines]))
    for name, forecast in methods.items():
        if forecast.memory is None:
            print(f"{name}: {forecast}")


def _cells(column: dict[str, Any]) -> list[str]:
    agreement = "-" if column["agreement"] is None else f"{column['agreement']:.3f}"
    sizes = [f"{column[name]:,}" for name in ("n_clusters", "smallest", "largest")]
    return [str(column["name"]), *sizes, f"{column['missing']:.1%}", agreement]
