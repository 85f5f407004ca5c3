"""Map a network onto many elements, and write the program of each."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.configuration import add_shape_option, positive_number
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, duration, fields, share, size
from mizzen.cli.mesh.networks import damaged_machine, find_network
from mizzen.compiler.source import read_shapes

if TYPE_CHECKING:
    from mizzen.mesh.machine import Machine
    from mizzen.mesh.mapping import Mapping
    from mizzen.mesh.network import Network
    from mizzen.mesh.program import MeshProgram
    from mizzen.mesh.simulation import Estimate

SUMMARY = "network + machine -> programs of all elements"
MOST_DEAD = 50.0
METIS = ".graph"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "network",
        metavar="NETWORK",
        help="a quantised .tflite, .onnx or .pt2, or resnet18, resnet50, mobilenet-v1, "
        "mobilenet-v2, transformer-block, which are shapes only",
    )
    parser.add_argument(
        "--machine",
        metavar="NAME",
        required=True,
        help="spinnaker2-48, spinnaker2-1, simba36, grid4x4, hetero, ethos-u55-16, one, or your "
        "own machine's .toml file",
    )
    parser.add_argument(
        "--replicas",
        metavar="N",
        type=positive_number,
        help="copies of the network (default: the number with the most images a second)",
    )
    add_shape_option(parser)
    given = parser.add_mutually_exclusive_group()
    given.add_argument(
        "--assignment",
        metavar="FILE",
        help="a TOML or JSON file that places layers on elements, all or some; Mizzen places the "
        "rest",
    )
    given.add_argument(
        "--tiles",
        metavar="FILE",
        help="your own mapper's result, an element for each tile, as JSON or a METIS partition",
    )
    parser.add_argument(
        "--tile-graph",
        metavar="FILE",
        help="write the tiles with their costs and messages for your own mapper: JSON, or a METIS "
        "graph if the name ends with .graph",
    )
    parser.add_argument(
        "--dead",
        metavar="PERCENT",
        type=_percent,
        default=0.0,
        help="percentage of elements and links that do not work, chosen by the seed (default: "
        "none)",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=int,
        default=0,
        help="seed of every random choice (default: %(default)s)",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the programs (default: NETWORK-MACHINE.mesh)"
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Map, write the programs, and say how fast they are and what limits them."""
    from mizzen.files import write_files
    from mizzen.mesh.emission import emit
    from mizzen.mesh.machine import find_machine
    from mizzen.mesh.npu import compile_tiles
    from mizzen.mesh.program import program_bytes
    from mizzen.mesh.simulation import estimate

    network = find_network(options.network, read_shapes(options.shape))
    machine = damaged_machine(find_machine(options.machine), options.dead, options.seed)
    start = time.process_time()
    with console.progress(f"mapping {network.name} onto {machine.name}") as tell:
        mapping = _mapping(options, network, machine, tell)
        program = compile_tiles(emit(mapping), tell)
    seconds = time.process_time() - start
    path = Path(options.output or f"{Path(options.network).stem}-{machine.name}.mesh")
    files = {path: program_bytes(program)}
    if options.tile_graph:
        files[Path(options.tile_graph)] = _graph_file(mapping, Path(options.tile_graph))
    write_files(files)
    written = len(files[path])
    estimated = estimate(program)
    document = {
        "network": network.name,
        "machine": machine.name,
        "program": str(path),
        "bytes": written,
        "cpu_seconds": seconds,
        "elements": len(program.elements),
        "messages": len(program.routes),
        "streams": len(program.streams),
        **figures(program, estimated),
    }
    head = fields(
        [
            (str(path), f"{size(written)}, mapped in {duration(seconds)} of processor"),
            *figure_rows(program, estimated),
        ],
        width=console.width,
    )
    return Answer(document, head)


def _mapping(
    options: argparse.Namespace, network: Network, machine: Machine, tell: Callable[[str], None]
) -> Mapping:
    """Return the mapping that was asked for: searched, by hand, or from the owner's mapper."""
    from mizzen.mesh.mapping import MappingOptions, map_network, read_by_hand, read_tiles

    if options.assignment:
        return read_by_hand(Path(options.assignment), network, machine)
    chosen = MappingOptions(replicas=options.replicas, seed=options.seed)
    mapping = map_network(network, machine, chosen, tell)
    return read_tiles(Path(options.tiles), mapping) if options.tiles else mapping


def _graph_file(mapping: Mapping, path: Path) -> bytes:
    from mizzen.mesh.mapping import metis_graph, tile_graph

    is_metis = path.suffix == METIS
    return (metis_graph(mapping) if is_metis else json.dumps(tile_graph(mapping))).encode()


def figures(program: MeshProgram, estimate: Estimate) -> dict[str, object]:
    """Return the figures of an estimate, for programs."""
    return {
        "replicas": program.replicas,
        "images_per_s": estimate.images_per_s,
        "bound_per_s": estimate.bound_per_s,
        "host_fed_per_s": estimate.host_fed_per_s,
        "latency_s": estimate.latency_s,
        "energy_j": estimate.energy_j,
        "bottleneck": {
            "resource": estimate.bottleneck.resource.value,
            "name": estimate.bottleneck.name,
            "seconds": estimate.bottleneck.seconds,
        },
    }


def figure_rows(program: MeshProgram, estimate: Estimate) -> list[tuple[str, str]]:
    """Return the figures of an estimate, for people."""
    usable = len(program.machine.usable)
    largest = max(program.elements, key=lambda element: element.data_bytes)
    capacity = program.machine.kind_of(largest.element).data_bytes
    bound = share(round(estimate.images_per_s), round(estimate.bound_per_s))
    facts = [
        ("elements", f"{len(program.elements):,} of {usable:,}, {_copies(program.replicas)}"),
        ("images a second", f"{estimate.images_per_s:,.0f}, {bound} of the arrays' bound"),
        ("latency", duration(estimate.latency_s)),
        ("energy", f"{estimate.energy_j * 1e3:.3g} mJ an image"),
        ("busiest", f"{estimate.bottleneck.resource.value} {estimate.bottleneck.name}"),
        ("fullest element", f"{size(largest.data_bytes)} of {size(capacity)}"),
    ]
    if program.streams:
        facts.append(("command streams", f"{len(program.streams)} tiles, each compiled and proved"))
    if estimate.host_fed_per_s is not None:
        facts.insert(2, ("fed by the host", f"{estimate.host_fed_per_s:,.0f} images a second"))
    return facts


def _copies(replicas: int) -> str:
    return "one copy" if replicas == 1 else f"{count(replicas, 'replica')}"


def _percent(text: str) -> float:
    value = float(text)
    if not 0 <= value <= MOST_DEAD:
        raise argparse.ArgumentTypeError(f"must be 0 to {MOST_DEAD:.0f}, and is {text}")
    return value
