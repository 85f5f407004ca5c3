"""Execute programs of a mesh exactly, and compare with the reference."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.configuration import add_output_option, output_folder, positive_number
from mizzen.cli.console import Answer, Console
from mizzen.cli.inputs import read_inputs
from mizzen.cli.layout import count, duration, fields
from mizzen.cli.mesh.programs import sound_program
from mizzen.cli.outputs import write_arrays
from mizzen.diagnostics import Diagnostic

if TYPE_CHECKING:
    from mizzen.artifact.interface import TensorInfo
    from mizzen.graph import Array
    from mizzen.mesh.execution import Engine
    from mizzen.mesh.network import Network

SUMMARY = "execute programs exactly"
ENGINES = ("in-process", "processes", "ray")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("program", metavar="PROGRAM", help="a file that mizzen mesh map wrote")
    parser.add_argument(
        "--input",
        metavar="[NAME=]FILE",
        nargs="+",
        default=(),
        help=".npy files, as mizzen run takes them (default: random numbers)",
    )
    parser.add_argument(
        "--images",
        metavar="N",
        type=positive_number,
        default=4,
        help="number of random inputs, if --input gives none (default: %(default)s)",
    )
    parser.add_argument(
        "--engine", choices=ENGINES, default="in-process", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=positive_number,
        default=2,
        help="worker processes, for the engines that have them (default: %(default)s)",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="compare every tensor with the integer reference of the network",
    )
    add_output_option(parser, "one .npy file for each output")


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Execute the programs, write the outputs, and compare if that was asked for."""
    from mizzen.mesh.execution import compare
    from mizzen.mesh.execution import execute as execute_program

    program = sound_program(Path(options.program))
    inputs = _inputs(options, program.network, console)
    engine = _engine(options.engine, options.workers)
    start = time.perf_counter()
    with console.progress(f"executing {options.program}"):
        executed = execute_program(program, inputs, engine)
    seconds = time.perf_counter() - start
    images = len(inputs[0])
    folder = output_folder(options)
    names = [program.network.tensors[index].name for index in program.network.outputs]
    edges = program.network.edges
    outputs = edges.give(executed.outputs) if edges is not None else executed.outputs
    paths = [folder / f"output_{index}.npy" for index in range(len(outputs))]
    write_arrays(dict(zip(paths, outputs, strict=True)), folder)
    facts = [("images", f"{images:,} in {duration(seconds)}, {options.engine}")]
    facts += [(name, str(path)) for name, path in zip(names, paths, strict=True)]
    document: dict[str, object] = {
        "program": str(options.program),
        "engine": options.engine,
        "images": images,
        "seconds": seconds,
        "restarts": executed.restarts,
        "outputs": [str(path) for path in paths],
    }
    failures: list[Diagnostic] = []
    if options.compare:
        with console.progress("comparing with the reference"):
            differences = compare(program, inputs, engine)
        wrong = [difference for difference in differences if difference.differing]
        document["inexact_tensors"] = len(wrong)
        document["tensors"] = len(differences)
        facts.append(("compared", f"{len(wrong)} of {count(len(differences), 'tensor')} differ"))
        failures = [
            Diagnostic("E509", f"tensors must equal the reference: {difference}")
            for difference in wrong
        ]
    return Answer(document, fields(facts, width=console.width), failures=failures)


def _inputs(options: argparse.Namespace, network: Network, console: Console) -> list[Array]:
    """Return `[images, *shape]` for each input, from files or drawn."""
    infos = [_info(network, place) for place in range(len(network.inputs))]
    if options.input:
        arrays = read_inputs(options.input, infos, console.note)
        return [array.reshape(-1, *info.shape) for array, info in zip(arrays, infos, strict=True)]
    console.note(f"no --input: {count(options.images, 'image')} of random numbers")
    return random_inputs(network, options.images)


def random_inputs(network: Network, images: int) -> list[Array]:
    """Return random `[images, *shape]` for each of a network's inputs, always the same."""
    import numpy as np

    random = np.random.default_rng(0)
    drawn: list[Array] = []
    for info in (_info(network, place) for place in range(len(network.inputs))):
        limits = np.iinfo(info.dtype)
        shape = (images, *info.shape)
        drawn.append(random.integers(limits.min, limits.max + 1, shape).astype(info.dtype))
    return list(network.edges.take(drawn)) if network.edges is not None else drawn


def _info(network: Network, place: int) -> TensorInfo:
    """Return an input as the user sees it: in the user's shape, floats too where it has a scale."""
    import numpy as np

    from mizzen.artifact.interface import Quantization, TensorInfo
    from mizzen.mesh.execution.tiles import dtypes_of

    index = network.inputs[place]
    tensor = network.tensors[index]
    dtype = np.dtype(dtypes_of(network)[index])
    if network.edges is None:
        return TensorInfo(tensor.name, tensor.shape, dtype, None)
    edge = network.edges.inputs[place]
    if edge.scale is None:
        return TensorInfo(tensor.name, edge.shape, dtype, None)
    scales = Quantization((edge.scale,), (edge.zero_point,))
    return TensorInfo(tensor.name, edge.shape, dtype, scales)


def _engine(name: str, workers: int) -> Engine:
    from mizzen.mesh.execution import InProcess, OnRay, Processes

    match name:
        case "processes":
            return Processes(workers)
        case "ray":
            return OnRay(workers)
        case _:
            return InProcess()
