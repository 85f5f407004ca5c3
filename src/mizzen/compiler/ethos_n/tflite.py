"""TFLite networks for Ethos-N: what of them its regions cannot be told by operations alone."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.ethos_n.configuration import EthosNConfiguration
from mizzen.compiler.ethos_n.regions import COMPILER, EthosNRegions
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.tflite import compile_lowered
from mizzen.diagnostics import ProgressCallback, Reason
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.lower import Lowered, lower
from mizzen.targets.families import ETHOS_N

CHANGES_SIGN = Reason(
    "one-sign",
    "it makes signed numbers of unsigned ones, or the other way round",
    help="quantise the network to int8 throughout, its inputs and outputs too",
    source=COMPILER,
)


def compile_network(
    model: Model,
    configuration: EthosNConfiguration,
    proof: ProofOptions,
    name: str,
    on_progress: ProgressCallback | None,
) -> Artifact:
    """Compile a network that was read from a file to the artifact `name`."""
    lowered = lower(model)
    compiler = EthosNRegions(configuration.target, configuration.inline, lowered.is_unsigned)

    def rule(operator: Operator) -> Sequence[Reason]:
        return (CHANGES_SIGN,) if _changes_sign(lowered, operator) else ()

    return compile_lowered(
        model, lowered, compiler, configuration, proof, ETHOS_N, name, on_progress, rule
    )


def _changes_sign(lowered: Lowered, operator: Operator) -> bool:
    """Whether an operator takes bytes of the one sign and gives those of the other."""
    indices = {*operator.inputs, *operator.outputs} & set(lowered.value_of)
    values = [lowered.value_of[index] for index in indices]
    computed = [value for value in values if value.constant is None]
    return len({lowered.is_unsigned(value) for value in computed}) > 1
