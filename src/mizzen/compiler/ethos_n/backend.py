"""Ethos-N78: networks are placed as graphs, and regions compiled by Mizzen's own compiler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.compiler.backend import Backend, chosen
from mizzen.compiler.ethos_n.configuration import EthosNConfiguration, resolve
from mizzen.compiler.options import CompileOptions, ConfigurationLine
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.support import Support
from mizzen.diagnostics import ProgressCallback
from mizzen.frontends.tflite import Model
from mizzen.targets import families

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.compiler.ethos_n.meaning import NetworkMeaning
    from mizzen.compiler.ethos_n.regions import ChannelsFirstRegions


class EthosN(Backend[EthosNConfiguration]):
    """Ethos-N78."""

    family = families.ETHOS_N
    suffix = "ethosn"

    def resolve(self, options: CompileOptions) -> EthosNConfiguration:
        """Return the configuration in force. Raises E2xx for what cannot be, E911 for the SRAM."""
        return resolve(options)

    def configuration_lines(
        self, configuration: EthosNConfiguration
    ) -> Iterator[ConfigurationLine]:
        """Say which configuration is in force."""
        return configuration.lines()

    def choices(self, configuration: EthosNConfiguration) -> dict[str, str]:
        """Return the target's own options, as they were given, and operators kept on the CPU."""
        return dict(configuration.options) | chosen(ignore_ops=configuration.ignore_ops)

    def compile_tflite(
        self,
        model: Model,
        data: bytes,
        configuration: EthosNConfiguration,
        proof: ProofOptions,
        on_progress: ProgressCallback | None,
    ) -> Artifact:
        """Compile a network; what the NPU does not take stays on the CPU."""
        from mizzen.compiler.ethos_n.tflite import compile_network

        name = self.artifact_name(Path(model.name).stem, ".tflite")
        return compile_network(model, configuration, proof, name, on_progress)

    def region_compiler(
        self, configuration: EthosNConfiguration, proof: ProofOptions
    ) -> ChannelsFirstRegions:
        """Return the compiler of regions of tensor graphs, whatever their order of axes."""
        from mizzen.compiler.ethos_n.regions import ChannelsFirstRegions

        return ChannelsFirstRegions(configuration.target, configuration.inline)

    def tflite_meaning(self, model: Model, configuration: EthosNConfiguration) -> NetworkMeaning:
        """Return the meaning of parts of a network in Ethos-N's roundings.

        Ref: docs/explanation/exactness.md, Ethos-N.
        """
        from mizzen.compiler.ethos_n.meaning import NetworkMeaning

        return NetworkMeaning(model, configuration)

    def support(self, config: str | None) -> Support:
        """Return the tables of the family's support; files of configurations are of no use here."""
        from mizzen.compiler.ethos_n.support import support

        return support()


ETHOS_N = EthosN()
