"""The least that a front-end is: here one of text files that name the length of a RELU."""

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.compile import TFLITE, FrontEnd
from mizzen.compiler.source import Source
from mizzen.diagnostics import ProgressCallback
from mizzen.package.tflite.builder import NetworkBuilder


def recognises(data: bytes, name: str) -> bool:
    return data.startswith(b"relu ")


def compile(file: Source, target: ResolvedTarget, on_progress: ProgressCallback | None) -> Artifact:
    builder, shape = NetworkBuilder(), (1, int(file.data.split()[1]))
    source, result = (builder.tensor(side, shape, np.int8, (0.5,), (0,)) for side in ("x", "y"))
    builder.operator("RELU", [source], [result])
    network = builder.finish([source], [result])
    return TFLITE.compile(Source(network, f"{file.name}.tflite"), target, on_progress)


FRONT_END = FrontEnd("RELU text", recognises, compile)
