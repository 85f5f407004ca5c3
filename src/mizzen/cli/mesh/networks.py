"""Networks and machines by what the command line calls them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.configuration import read_file
from mizzen.compiler.source import Extents, Source
from mizzen.diagnostics import did_you_mean, fail

if TYPE_CHECKING:
    from mizzen.mesh.machine import Machine
    from mizzen.mesh.network import Network

PERCENT = 100


def find_network(word: str, shapes: Extents) -> Network:
    """Return the network of a file .tflite, .onnx or .pt2, or one of shapes only by its name.

    shapes  what is said of extents that an ONNX network leaves open

    E507 for another word, and what reading the file raises.
    """
    from mizzen.mesh.network.shapes import SHAPES

    path = Path(word)
    match path.suffix:
        case ".tflite":
            from mizzen.mesh.network import network_of_tflite

            return network_of_tflite(read_file(path), path.name)
        case ".onnx":
            from mizzen.compiler.onnx.compile import read_quantized
            from mizzen.mesh.network.onnx import network_of_onnx

            source = Source(read_file(path), path.name, path.parent)
            return network_of_onnx(read_quantized(source, shapes), path.name)
        case ".pt2":
            from mizzen.compiler.torch.exported import load_exported
            from mizzen.mesh.network.exported import network_of_exported

            return network_of_exported(load_exported(read_file(path), path.name), path.name)
        case _ if word in SHAPES:
            return SHAPES[word]()
        case _:
            raise fail(
                "E507",
                f"the network must be a file .tflite, .onnx or .pt2, or {', '.join(SHAPES)}, not "
                f"{word}",
                help=did_you_mean(word, SHAPES),
            )


def damaged_machine(machine: Machine, percent: float, seed: int) -> Machine:
    """Return the machine with a share of its elements and links dead, if that was asked for."""
    from mizzen.mesh.machine import damaged

    return damaged(machine, percent / PERCENT, seed) if percent else machine
