"""Which block configurations a pass may use, and which it had best.

Ref: Ethos-N driver stack 23.02, the Support Library's block configuration filters.
"""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation, PleOperation
from mizzen.targets.ethos_n.config import BlockConfig, Capabilities
from mizzen.targets.ethos_n.tensors import Shape

_8X8, _16X8, _32X8, _16X16 = (
    BlockConfig(8, 8),
    BlockConfig(16, 8),
    BlockConfig(32, 8),
    BlockConfig(16, 16),
)
KERNEL_BLOCKS: dict[PleOperation, frozenset[BlockConfig]] = {
    PleOperation.DOWNSAMPLE_2X2: frozenset({_16X8, _32X8, _16X16, _8X8}),
    PleOperation.INTERLEAVE_2X2_2_2: frozenset({_16X16}),
    PleOperation.MAXPOOL_2X2_2_2: frozenset({_16X16, _32X8, _8X8, _16X8}),
    PleOperation.MEAN_XY_7X7: frozenset({_8X8}),
    PleOperation.MEAN_XY_8X8: frozenset({_8X8}),
    PleOperation.MAXPOOL_3X3_2_2_EVEN: frozenset({_32X8, _8X8}),
    PleOperation.MAXPOOL_3X3_2_2_ODD: frozenset({_32X8, _8X8}),
}
"""The blocks that a kernel of the programmable layer engine is made for; others take every one."""


def usable_blocks(
    allowed: Iterable[BlockConfig],
    operation: MceOperation,
    kernel: tuple[int, int],
    algorithm: Algorithm,
    ple: PleOperation,
    capabilities: Capabilities,
) -> tuple[BlockConfig, ...]:
    """Return the blocks that all parts of a pass can work with, in the order of `allowed`.

    kernel  height and width of the convolution
    """
    found = [block for block in allowed if block in KERNEL_BLOCKS.get(ple, {block})]
    if operation is MceOperation.FULLY_CONNECTED:
        found = [block for block in found if block == _8X8]
    if algorithm is Algorithm.WINOGRAD:
        # A block takes four times the accumulators, or twice with a kernel of one row or column.
        share = 4 if min(kernel) > 1 else 2
        most = capabilities.accumulators_per_og // share
        found = [block for block in found if block.width * block.height <= most]
    return tuple(found)


def best_first(
    blocks: Iterable[BlockConfig], output: Shape, kernel: tuple[int, int]
) -> tuple[BlockConfig, ...]:
    """Sort blocks, those first that leave the least of a block unused.

    The smallest block that holds the whole plane is best; among those that do not, that with the
    largest rests at the far edges, then the longest across the shorter side of the kernel.
    """
    _, height, width, _ = output

    def badness(block: BlockConfig) -> tuple[int, ...]:
        if height <= block.height and width <= block.width:
            return 0, block.width * block.height
        rest = height % block.height + width % block.width
        if kernel[1] > kernel[0]:
            return 1, -rest, -block.width, -block.height
        return 1, -rest, -block.height, -block.width

    return tuple(sorted(blocks, key=badness))


def widest_first(blocks: Iterable[BlockConfig]) -> tuple[BlockConfig, ...]:
    """Sort blocks by width, then by height, the largest first."""
    return tuple(sorted(blocks, key=lambda block: (-block.width, -block.height)))
