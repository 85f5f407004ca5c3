"""Performance data of passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mizzen.targets.ethos_n.commands import Convert, McePle, PleOnly
from mizzen.targets.ethos_n.commands_values import Location, MceOperation
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.estimate.options import AS_IT_IS, EstimationOptions
from mizzen.targets.ethos_n.estimate.passes import Pass, require_possible, tensors_of
from mizzen.targets.ethos_n.estimate.statistics import Statistics, Traffic
from mizzen.targets.ethos_n.estimate.traffic import (
    WITHOUT_WEIGHTS,
    Kernel,
    conversion_traffic,
    input_traffic,
    output_traffic,
    weight_traffic,
)
from mizzen.targets.ethos_n.estimate.work import mce_work, ple_work


@dataclass(frozen=True, slots=True)
class PerformanceData:
    """The passes of a network with their figures.

    issues  why an operation, by its id, could not be estimated
    """

    passes: tuple[tuple[Pass, Statistics], ...]
    issues: Mapping[int, str] = field(default_factory=dict[int, str])


def estimate(
    passes: Iterable[Pass],
    capabilities: Capabilities,
    options: EstimationOptions = AS_IT_IS,
    issues: Mapping[int, str] | None = None,
) -> PerformanceData:
    """Return the performance data of a compiled network; E983 for passes that cannot be."""
    rows = tuple((row, statistics_of(row, capabilities, options)) for row in passes)
    return PerformanceData(rows, issues or {})


def not_estimated(reason: str) -> str:
    """Say why an operation could not be estimated, in the library's words."""
    return f"Could not be estimated and has zero performance impact. Reason: {reason}"


def statistics_of(
    row: Pass, capabilities: Capabilities, options: EstimationOptions = AS_IT_IS
) -> Statistics:
    """Return the figures of a pass; E983 for one that cannot be."""
    require_possible(row)
    saving = options.activation_compression_saving
    match row.command:
        case McePle():
            return _mce_ple(row, row.command, capabilities, saving)
        case PleOnly() as command:
            *inputs, _ = tensors_of(command)
            read = [
                input_traffic(record, WITHOUT_WEIGHTS, 1, capabilities, saving) for record in inputs
            ]
            shapes = [record.shape for record in inputs]
            return Statistics(
                input=sum(read, Traffic()),
                output=output_traffic(command.output, saving),
                ple=ple_work(command.ple.operation, shapes, capabilities),
            )
        case Convert(source, target):
            in_dram = source.location is Location.DRAM
            return Statistics(
                input=conversion_traffic(source, in_dram, saving),
                output=conversion_traffic(target, in_dram, saving),
            )


def kernel_of(row: Pass, command: McePle) -> Kernel:
    """Return the weights of a pass as the network has them."""
    shape = row.weights_shape or command.weights.shape
    return Kernel(shape, command.mce.operation is MceOperation.DEPTHWISE_CONVOLUTION)


def _mce_ple(row: Pass, command: McePle, capabilities: Capabilities, saving: float) -> Statistics:
    kernel = kernel_of(row, command)
    depth_stripes = -(-command.output.shape[3] // command.output.stripe_shape[3])
    return Statistics(
        input=input_traffic(command.input, kernel, depth_stripes, capabilities, saving),
        output=output_traffic(command.output, saving),
        weights=weight_traffic(
            command.weights, kernel, row.weight_stripe_bytes, command.input, capabilities
        ),
        mce=mce_work(command, kernel, capabilities),
        ple=ple_work(command.ple.operation, [command.mce.output_shape], capabilities),
    )
