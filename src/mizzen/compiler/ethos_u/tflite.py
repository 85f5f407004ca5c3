"""Compile a TFLite network with Vela's core, which leaves to the CPU what it does not take."""

from __future__ import annotations

from pathlib import Path

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import contents_of
from mizzen.artifact.npu import read_network
from mizzen.compiler.ethos_u.cpu_fallback import compile_with_cpu_fallback
from mizzen.compiler.ethos_u.report import origins_of, report_of
from mizzen.diagnostics import ProgressCallback
from mizzen.frontends.tflite import Model
from mizzen.targets.ethos_u.config import EthosUConfiguration


def compile_network(
    model: Model,
    data: bytes,
    configuration: EthosUConfiguration,
    on_progress: ProgressCallback | None,
) -> Artifact:
    """Compile a network that was read from the file `data`. Raises E3xx if the compiler fails."""
    generated = compile_with_cpu_fallback(model, data, configuration, on_progress=on_progress)
    origins = origins_of(model, generated.compiled)
    name = f"{Path(model.name).stem}_vela.tflite"
    data = generated.compiled.network
    network = read_network(data, model.name)
    report = report_of(model, network, configuration, generated, origins)
    return Artifact(data, name, contents_of(network, origins), report)
