"""The weight stream of a pass.

Ref: Ethos-N driver stack 23.02, the Support Library's `WeightEncoder`.
"""

from __future__ import annotations

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import MceOperation
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.emit.pass_commands import written_quantization
from mizzen.targets.ethos_n.emit.scaling import accumulator_scale, overall_factors
from mizzen.targets.ethos_n.schedule.attempt import McePass
from mizzen.targets.ethos_n.weights.encode import EncodedWeights, encode
from mizzen.targets.ethos_n.weights.format import WeightLayout
from mizzen.targets.ethos_n.weights.headers import OutputScale


def encode_weights(made: McePass, capabilities: Capabilities) -> EncodedWeights:
    """Encode the weights of a pass; E973 if a stripe of them is larger than its place in SRAM."""
    work, tile, written = made.work, made.plan.weights, written_quantization(made)
    factors = overall_factors(made.mce.source.quantization, work.weights.quantization, written)
    multipliers, shifts = zip(*map(accumulator_scale, factors), strict=True)
    encoded = encode(
        work.weight_data,
        _layout(made),
        zero_point=work.weights.quantization.zero_point,
        bias=work.bias,
        scale=OutputScale(multipliers, shifts, written.zero_point),
        capabilities=capabilities,
    )
    if tile.bytes < encoded.max_stripe_bytes * tile.stripes:
        ids = ", ".join(map(str, sorted(made.mce.operation_ids)))
        raise fail(
            "E973",
            f"{tile.stripes} stripes of the weights of operations {ids} must fit into "
            f"{tile.bytes} bytes; one has {encoded.max_stripe_bytes}",
            help="leave the operation to the CPU",
        )
    return encoded


def _layout(made: McePass) -> WeightLayout:
    work, stripe = made.work, made.plan.weights.stripe
    depth = stripe[3]
    if work.operation is MceOperation.DEPTHWISE_CONVOLUTION:
        depth = depth * stripe[2] // (work.stride.x * work.stride.y)
    return WeightLayout(
        work.weights.shape,
        depth,
        stripe[2],
        work.operation,
        made.algorithm,
        work.stride.y,
        work.stride.x,
        work.pad_top,
        work.pad_left,
    )
