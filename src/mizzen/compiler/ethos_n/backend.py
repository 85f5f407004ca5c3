"""Ethos-N78: networks are placed as graphs, and regions compiled by Mizzen's own compiler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.compiler.backend import Backend
from mizzen.compiler.ethos_n.configuration import EthosNConfiguration, resolve
from mizzen.compiler.options import CompileOptions, ConfigurationLine
from mizzen.compiler.support import Support
from mizzen.diagnostics import MizzenError, ProgressCallback, fail
from mizzen.frontends.tflite import Model

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.compiler.ethos_n.regions import ChannelsFirstRegions
    from mizzen.report import CompileReport


class EthosN(Backend[EthosNConfiguration]):
    """Ethos-N78."""

    def resolve(self, options: CompileOptions) -> EthosNConfiguration:
        """Return the configuration in force. Raises E2xx for what cannot be, E911 for the SRAM."""
        return resolve(options)

    def configuration_lines(
        self, configuration: EthosNConfiguration
    ) -> Iterator[ConfigurationLine]:
        """Say which configuration is in force."""
        return configuration.lines()

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

    def region_compiler(self, configuration: EthosNConfiguration) -> ChannelsFirstRegions:
        """Return what compiles regions of tensor graphs, whatever their order of axes."""
        from mizzen.compiler.ethos_n.regions import ChannelsFirstRegions

        return ChannelsFirstRegions(configuration.target, configuration.inline)

    def support(self, config: str | None) -> Support:
        """Return what the family supports; files of configurations are of no use here."""
        from mizzen.compiler.ethos_n.support import support

        return support()

    def write_summary(
        self, report: CompileReport, configuration: EthosNConfiguration, folder: Path
    ) -> Path | None:
        """Write nothing: the report has everything, and no other tool reads a summary."""
        return None


ETHOS_N = EthosN()


def _without_scales(name: str) -> MizzenError:
    return fail(
        "E995",
        f"Ethos-N needs the scales of all tensors, and {name} has none: TOSA keeps only what "
        "rescaling makes of them",
        rule="TOSA 1.0, RESCALE",
        help="compile the .tflite or the .pt2 that the file was made of",
    )
