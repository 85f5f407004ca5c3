"""Compile a TFLite network with Vela's core, which leaves to the CPU what it does not take."""

from __future__ import annotations

from pathlib import Path

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import Waiting
from mizzen.compiler.ethos_u.cpu_fallback import generate_whatever_happens
from mizzen.compiler.ethos_u.report import origins_of, report_of
from mizzen.frontends.tflite import Model
from mizzen.targets.ethos_u.config import Configuration


def compile_network(
    model: Model, data: bytes, configuration: Configuration, waiting: Waiting | None
) -> Artifact:
    """Compile a network that was read from the file `data`. Raises E3xx if the compiler fails."""
    generated = generate_whatever_happens(model, data, configuration, waiting=waiting)
    origins = origins_of(model, generated.compiled)
    name = f"{Path(model.name).stem}_vela.tflite"
    artifact = Artifact(generated.compiled.network, name, None, origins)
    artifact.report = report_of(model, configuration, generated, origins)
    return artifact
