"""Ethos-N78: networks are placed as graphs, and regions compiled by Mizzen's own compiler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mizzen.compiler.backend import (
    Backend,
    CompileOptions,
    ConfigurationLine,
    HazardReport,
    Origins,
    ProgramView,
    ProgressCallback,
)
from mizzen.compiler.ethos_n.configuration import EthosNConfiguration, resolve
from mizzen.compiler.support import Support
from mizzen.diagnostics import MizzenError, fail
from mizzen.frontends.tflite import CONTAINER_CODE, Model, Operator, Tensor, container_operator
from mizzen.targets.ethos_n.config import VARIANTS, decode_capabilities
from mizzen.targets.ethos_n.program import read_program

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact, NpuStep
    from mizzen.artifact.ethos_n import NpuProgram, NpuSimulator, ProgramTensor
    from mizzen.compiler.ethos_n.regions import TurningRegions
    from mizzen.report import CompileReport


class EthosN(Backend[EthosNConfiguration]):
    """Ethos-N78."""

    name = "Ethos-N"
    code = CONTAINER_CODE
    accelerators = tuple(VARIANTS)

    def resolve(self, asked: CompileOptions) -> EthosNConfiguration:
        """Return the configuration in force. Raises E2xx for what cannot be, E911 for the SRAM."""
        return resolve(asked)

    def shown(self, configuration: EthosNConfiguration) -> Iterator[ConfigurationLine]:
        """Say which configuration is in force."""
        return configuration.shown()

    def artifact_name(self, stem: str, ending: str) -> str:
        """Name an artifact after its NPU."""
        return f"{stem}_ethosn{ending}"

    def compile_tflite(
        self,
        model: Model,
        data: bytes,
        configuration: EthosNConfiguration,
        on_progress: ProgressCallback | None,
    ) -> Artifact:
        """Compile a network; what the NPU does not take stays on the CPU."""
        from mizzen.compiler.ethos_n.tflite import compile_network

        return compile_network(model, configuration, on_progress)

    def compile_tosa(
        self,
        data: bytes,
        name: str,
        configuration: EthosNConfiguration,
        on_progress: ProgressCallback | None,
    ) -> Artifact:
        """Refuse a TOSA file, E995: it has no scales, from which the compiler makes its own."""
        raise _without_scales(name)

    def check_tosa(
        self,
        data: bytes,
        name: str,
        configuration: EthosNConfiguration,
        on_progress: ProgressCallback | None,
    ) -> CompileReport:
        """Refuse a TOSA file, as `compile_tosa` does."""
        raise _without_scales(name)

    def region_compiler(self, configuration: EthosNConfiguration) -> TurningRegions:
        """Return what compiles regions of tensor graphs, whatever their order of axes."""
        from mizzen.compiler.ethos_n.regions import TurningRegions

        return TurningRegions(configuration.target, configuration.inline)

    def support(self, config: str | None) -> Support:
        """Return what the family supports; files of configurations are of no use here."""
        from mizzen.compiler.ethos_n.support import support

        return support()

    def write_summary(
        self, report: CompileReport, configuration: EthosNConfiguration, folder: Path
    ) -> Path | None:
        """Write nothing: the report has everything, and no other tool reads a summary."""
        return None

    def step(self, model: Model, operator: Operator, origins: Origins) -> NpuStep:
        """Make the step of an operator. E12x, E91x, E92x or E93x if it is damaged."""
        from mizzen.artifact.artifact import NpuStep
        from mizzen.artifact.ethos_n import NpuProgram

        parts = container_operator(model, operator)
        capabilities = decode_capabilities(parts.capabilities.tobytes())
        program = NpuProgram(
            read_program(parts.container.tobytes(), capabilities),
            tuple(map(_place, parts.inputs)),
            tuple(map(_place, parts.outputs)),
            model.name,
            origins,
        )
        inputs, outputs = (
            tuple(row.index for row in side) for side in (parts.inputs, parts.outputs)
        )
        return NpuStep(self, program, inputs, outputs, ())

    def accelerator_of(self, program: NpuProgram) -> str:
        """Name the variant that the operator says it is for."""
        from mizzen.artifact.ethos_n import variant_of

        return variant_of(program.program.capabilities).name

    def simulator(self, program: NpuProgram) -> NpuSimulator:
        """Plan a program's execution."""
        from mizzen.artifact.ethos_n import NpuSimulator

        return NpuSimulator(program)

    def hazards(self, program: NpuProgram) -> HazardReport:
        """Find accesses to memory that cannot be; the order of passes is fixed."""
        from mizzen.artifact.ethos_n import check_memory

        return check_memory(program)

    def view(self, program: NpuProgram) -> ProgramView:
        """Take a program apart to look at it."""
        from mizzen.artifact.ethos_n import view

        return view(program)


def _without_scales(name: str) -> MizzenError:
    return fail(
        "E995",
        f"Ethos-N needs the scales of all tensors, and {name} has none: TOSA keeps only what "
        "rescaling makes of them",
        rule="TOSA 1.0, RESCALE",
        help="compile the .tflite or the .pt2 that the file was made of",
    )


def _place(tensor: Tensor) -> ProgramTensor:
    from mizzen.artifact.ethos_n import ProgramTensor

    return ProgramTensor(tensor.name, tensor.shape, tensor.dtype or np.dtype(np.uint8))


BACKEND = EthosN()
