"""Rules of transposition.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp` and `Utils.cpp`
(`EstimateWeightSizeBytes`).
"""

from __future__ import annotations

from mizzen.targets.ethos_n.config import Capabilities, Profile
from mizzen.targets.ethos_n.legal.operation_rule import (
    V23_02,
    Case,
    Measure,
    OperationRule,
    Step,
    rule,
)
from mizzen.targets.ethos_n.legal.quantization_rules import input_per_tensor, input_zero_point
from mizzen.targets.ethos_n.legal.tensor_rules import (
    OUTPUT_INFO,
    data_type,
    depth,
    first,
    input_layout,
    output,
)
from mizzen.targets.ethos_n.network import Transpose
from mizzen.targets.ethos_n.tensors import Shape
from mizzen.targets.rules import Level

IDENTITY: Shape = (0, 1, 2, 3)
CONVERTED: dict[Profile, tuple[Shape, ...]] = {
    Profile.V23_02: ((0, 2, 3, 1),),
    Profile.V25_03: ((0, 2, 3, 1), (0, 3, 1, 2)),
}
"""Permutations that a change of format makes while it is copied: the input alone is in the SRAM."""
LOADED_AS_NCHW: tuple[Shape, ...] = ((0, 1, 3, 2), (0, 3, 2, 1))
"""Permutations of which the input is read as if it were NCHW."""

WEIGHT_HEADER_BYTES = 41 + 14
"""Worst case of a channel's weight stream besides the weights: parameters with a full palette, and
the header with bias and scale."""


def depthwise_weight_bytes(channels: int, capabilities: Capabilities) -> int:
    """Return the most bytes that the weights of a 1x1 depthwise convolution are encoded in.

    Each channel has a weight and a mask bit for each input generator; 9 bits hold 8 at worst.
    """
    banks = capabilities.srams
    weights = 1 + banks // 8
    each = (9 * weights + 7) // 8 + WEIGHT_HEADER_BYTES
    stream = each * -(-channels // banks)
    return -(-stream // 16) * 16 * banks


def brick_bytes(shape: Shape, capabilities: Capabilities) -> int:
    """Return the bytes of 8-bit elements in whole brick groups."""
    batch, *extents = shape
    total = batch
    for extent, step in zip(extents, capabilities.brick_group_shape[1:], strict=True):
        total *= -(-extent // step) * step
    return total


def transpose_bytes(
    shape: Shape, permutation: Shape, capabilities: Capabilities, profile: Profile
) -> int:
    """Return the SRAM that a transposition needs; it is not split in stripes."""
    if permutation == IDENTITY:
        return 0
    if permutation in CONVERTED[profile]:
        return brick_bytes(shape, capabilities)
    if permutation in LOADED_AS_NCHW:
        _, height, width, channels = shape
        shape = (1, width, channels, height)
    # An identity convolution comes before it: its input, its output, its weights, its kernels.
    planes = 2 * brick_bytes(shape, capabilities)
    kernels = capabilities.max_ple_bytes * capabilities.srams
    return planes + depthwise_weight_bytes(shape[3], capabilities) + kernels


@rule("batch-axis").must_have(
    "the axis of the batch as its first",
    "leave the first axis where it is",
    "Transpose of batch(0) axis is not allowed",
)
def _batch_axis(case: Case[Transpose]) -> str | None:
    found = case.operation.permutation[0]
    return None if found == 0 else f"axis {found}"


@rule("axes").must_have(
    "axes from 0 to 3",
    "give the feature map four dimensions",
    "Transpose of dimensions > 3 are not allowed",
)
def _axes(case: Case[Transpose]) -> str | None:
    permutation = case.operation.permutation
    return None if all(0 <= axis <= 3 for axis in permutation) else str(permutation)


@rule("unique").must_have(
    "each axis once", "export the network again", "Transpose axes must be unique"
)
def _repeated(case: Case[Transpose]) -> str | None:
    permutation = case.operation.permutation
    return None if len(set(permutation)) == 4 else str(permutation)


def _fits(profile: Profile) -> Measure[Transpose]:
    def measure(case: Case[Transpose]) -> str | None:
        there = case.capabilities.sram_bytes
        shape, permutation = case.input.shape, case.operation.permutation
        needed = transpose_bytes(shape, permutation, case.capabilities, profile)
        return None if needed <= there else f"{needed} of {there} bytes"

    return measure


def _size_rule(profile: Profile, permutations: str) -> OperationRule[Transpose]:
    return rule("sram", profiles=(profile,)).must_have(
        f"an input that fits in the SRAM for {permutations}, together with as large an output, "
        "weights of an identity convolution and 4096 bytes for each bank for all others",
        "split the input, or take a variant with more SRAM",
        "The tensors are too large",
    )(_fits(profile))


@rule("estimate", Level.ESTIMATE_ONLY, V23_02).must_have(
    "another form", "keep the order of axes through the network, and transpose outside of it"
)
def _never(case: Case[Transpose]) -> str | None:
    return f"permutation {case.operation.permutation}"


TRANSPOSE: tuple[Step[Transpose], ...] = (
    depth("input-depth", "Input to transpose", first),
    data_type("input-type", "Input to transpose", first),
    input_layout("Input must be NHWC or NHWCB"),
    _batch_axis,
    _axes,
    _repeated,
    *input_per_tensor("Transpose", Level.ESTIMATE_ONLY),
    input_zero_point(),
    depth("output-depth", "Output of transpose", output),
    OUTPUT_INFO,
    _size_rule(Profile.V23_02, "(0, 2, 3, 1)"),
    _size_rule(Profile.V25_03, "(0, 2, 3, 1) and (0, 3, 1, 2)"),
    _never,
)
