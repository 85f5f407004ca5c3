"""The plan of a pass of the compute engines: algorithm, strategy, block, places.

Ref: Ethos-N driver stack 23.02, the Support Library's `McePlePass`.
"""

from __future__ import annotations

from functools import lru_cache

from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    MceOperation,
    PleOperation,
    Strategy,
    Upsample,
)
from mizzen.targets.ethos_n.config import BLOCK_CONFIGS, Capabilities, CompilationOptions
from mizzen.targets.ethos_n.lower.graph import Node
from mizzen.targets.ethos_n.lower.work import Mce
from mizzen.targets.ethos_n.schedule.attempt import Attempt
from mizzen.targets.ethos_n.schedule.block_configs import usable_blocks
from mizzen.targets.ethos_n.schedule.channel_streaming import stream_channels
from mizzen.targets.ethos_n.schedule.mce_chain import MAX_3X3, Chain
from mizzen.targets.ethos_n.schedule.plan import McePlan
from mizzen.targets.ethos_n.schedule.sram import Holes
from mizzen.targets.ethos_n.schedule.strategies import choose_strategy
from mizzen.targets.ethos_n.schedule.stripes import Stage
from mizzen.targets.ethos_n.schedule.winograd import best_algorithm, covered_kernel

CUT_ALONG_WIDTH = frozenset({Strategy.STRATEGY_4, Strategy.STRATEGY_6})
"""Strategies that 3x3 maxima cannot follow: they need the rows of a plane one after the other."""


def algorithm_of(mce: Node, options: CompilationOptions) -> Algorithm:
    """Return the algorithm that a node's convolution is to be computed with."""
    work = mce.doing(Mce)
    plain = work.stride.x == 1 and work.stride.y == 1 and work.upsample is Upsample.OFF
    allowed = options.winograd and not mce.demands.direct
    if allowed and plain and work.operation is MceOperation.CONVOLUTION:
        return best_algorithm(*work.weights.shape[:2])
    return Algorithm.DIRECT


def find_plan(
    chain: Chain, mce: Node, attempt: Attempt, options: CompilationOptions
) -> McePlan | None:
    """Return the plan of a chain, whose work of the compute engines is in `mce`; None for none."""
    work, source = mce.doing(Mce), chain.nodes[0].source
    algorithm = algorithm_of(mce, options)
    ple = chain.kernel.kernel
    stage = Stage(
        operation=work.operation,
        input=mce.source.shape,
        mce_output=mce.shape,
        output=chain.nodes[-1].shape,
        kernel=covered_kernel(work.weights.shape, algorithm),
        weight_format=work.weights.format,
        mce_ratio=work.ratio,
        ple_ratio=chain.kernel.ratio,
        upsample=work.upsample,
        pad_top=work.pad_top,
        pad_left=work.pad_left,
        input_offset_bytes=(
            attempt.of(source).sram_offset_bytes if attempt.in_sram(source) else None
        ),
        deepest_stripe=_deepest_stripe(ple, work.operation, attempt.capabilities),
    )
    kernel = work.weights.shape[:2]
    holes, capabilities = attempt.sram.holes, attempt.capabilities
    return _plan(stage, kernel, algorithm, ple, options, holes, capabilities)


def _deepest_stripe(
    ple: PleOperation, operation: MceOperation, capabilities: Capabilities
) -> int | None:
    """Return how many channels a 3x3 maximum can buffer the neighbouring stripes' rows of."""
    if ple not in MAX_3X3:
        return None
    depthwise = operation is MceOperation.DEPTHWISE_CONVOLUTION
    return capabilities.srams if depthwise else capabilities.ogs


@lru_cache(maxsize=1024)
def _plan(
    stage: Stage,
    kernel: tuple[int, int],
    algorithm: Algorithm,
    ple: PleOperation,
    options: CompilationOptions,
    holes: Holes,
    capabilities: Capabilities,
) -> McePlan | None:
    """Choose strategy, block and places; the same is asked whenever a chain grows by a node.

    kernel  height and width of the weights themselves
    """
    strategies = options.strategies - (CUT_ALONG_WIDTH if ple in MAX_3X3 else frozenset())
    allowed = [block for block in BLOCK_CONFIGS if block in options.block_configs]
    blocks = usable_blocks(allowed, stage.operation, kernel, algorithm, ple, capabilities)
    if stage.operation is MceOperation.FULLY_CONNECTED:
        return stream_channels(stage, blocks, holes, capabilities)
    found = choose_strategy(stage, strategies, blocks, holes, capabilities)
    streams = stage.operation is MceOperation.CONVOLUTION and algorithm is Algorithm.DIRECT
    if found is None and streams and Strategy.STRATEGY_7 in strategies:
        return stream_channels(stage, blocks, holes, capabilities)
    return found
