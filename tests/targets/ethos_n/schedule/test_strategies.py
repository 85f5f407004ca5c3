"""Which strategy a pass follows, as the SRAM gets smaller and as strategies are left out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.targets.ethos_n.commands_values import MceOperation, Strategy, Upsample
from mizzen.targets.ethos_n.config import (
    BLOCK_CONFIGS,
    CHOOSABLE_STRATEGIES,
    VARIANTS,
    capabilities_of,
)
from mizzen.targets.ethos_n.lower.work_graph import SAME_SHAPE
from mizzen.targets.ethos_n.schedule.attempt import CELLS, McePlan, Tile, consists_of_cells
from mizzen.targets.ethos_n.schedule.strategies import (
    choose_strategy,
    input_traffic_bytes,
    stream_channels,
)
from mizzen.targets.ethos_n.schedule.stripes import Stage
from mizzen.targets.ethos_n.tensors import DataFormat, Shape

HARDWARE = capabilities_of(VARIANTS["ethos-n78-4tops-4ple"])
BANK = HARDWARE.sram_bytes // HARDWARE.srams
S0, S1, S3, S4, S6, S7 = (
    Strategy.STRATEGY_0,
    Strategy.STRATEGY_1,
    Strategy.STRATEGY_3,
    Strategy.STRATEGY_4,
    Strategy.STRATEGY_6,
    Strategy.STRATEGY_7,
)


def convolution(shape: Shape = (1, 64, 64, 64), outputs: int = 64, side: int = 3) -> Stage:
    output = (*shape[:3], outputs)
    return Stage(
        MceOperation.CONVOLUTION,
        shape,
        output,
        output,
        (side, side, shape[3], outputs),
        DataFormat.HWIO,
        SAME_SHAPE,
        SAME_SHAPE,
        Upsample.OFF,
        side // 2,
        side // 2,
        None,
        None,
    )


def depthwise(shape: Shape) -> Stage:
    return replace(
        convolution(shape, shape[3]),
        operation=MceOperation.DEPTHWISE_CONVOLUTION,
        kernel=(3, 3, shape[3], 1),
        weight_format=DataFormat.HWIM,
    )


def chosen(
    stage: Stage,
    bank_bytes: int = BANK,
    strategies: tuple[Strategy, ...] = CHOOSABLE_STRATEGIES,
) -> McePlan | None:
    return choose_strategy(stage, strategies, BLOCK_CONFIGS, ((0, bank_bytes),), HARDWARE)


def strategy(plan: McePlan | None) -> Strategy | None:
    return None if plan is None else plan.strategy


@pytest.mark.parametrize(
    ("bank_bytes", "found"),
    [
        # The kernel of the layer engine 4096; input and output 64 * 64 * 64 / 16 = 16384 each; the
        # weights 4 turns of 9 * 9 * 64 / 8 + 55 = 703 bytes, 2812, rounded up to 2816.
        (4096 + 2 * 16384 + 2816, S3),
        (4096 + 2 * 16384 + 2815, S0),
        # Three stripes of 8 rows, 6144, the weights, two of the output, 4096.
        (4096 + 6144 + 2816 + 4096, S0),
        # Beyond that channels or columns are cut too.
        (4096 + 6144 + 2816 + 4095, S6),
    ],
)
def test_less_room_asks_for_smaller_stripes(bank_bytes: int, found: Strategy) -> None:
    assert strategy(chosen(convolution(), bank_bytes)) is found


def test_weights_are_cut_where_planes_are_small() -> None:
    """The kernel takes 4096 of each bank's 65536 bytes, the input 2048.

    Each channel of weights is 9 * 9 * 512 / 8 + 55 = 5239 bytes. Of 96 channels, a sixth rounded
    up, two stripes are 2 * 31440 bytes of each bank, too many; of 80 they are 2 * 26208, and fit.
    """
    plan = chosen(convolution((1, 8, 8, 512), 512))
    assert plan is not None
    assert plan.strategy is S1
    assert plan.input.stripe == (1, 8, 8, 512)
    assert plan.weights == Tile((3, 3, 512, 80), 16 * 2 * 26208, 2, 4096 + 2048)
    assert plan.output.stripe == (1, 8, 8, 80)


def test_preference_without_the_ones_before() -> None:
    stage = convolution()
    left, found = list(CHOOSABLE_STRATEGIES), list[Strategy | None]()
    while left:
        plan = chosen(stage, strategies=tuple(left))
        found.append(strategy(plan))
        if plan is None:
            break
        left.remove(plan.strategy)
    assert found == [S3, S0, S1, S6, S4, None]


def test_depthwise_channels_are_cut_last() -> None:
    stage = depthwise((1, 64, 64, 64))
    plan = chosen(stage, strategies=(S7,))
    assert plan is not None
    assert plan.input.stripe[3] == plan.output.stripe[3] < 64
    assert plan.input.stripe[1] < 64
    assert chosen(convolution(), strategies=(S7,)) is None


def test_a_map_in_sram_is_not_cut_both_ways() -> None:
    kept = replace(convolution(), input_offset_bytes=4096)
    for row in (S6, S7):
        assert chosen(kept, strategies=(row,)) is None


def test_tiles_are_those_of_the_least_input_traffic() -> None:
    stage = convolution((1, 128, 128, 64))
    best = chosen(stage, strategies=(S6,))
    assert best is not None
    for block in BLOCK_CONFIGS:
        plan = choose_strategy(stage, (S6,), (block,), ((0, BANK),), HARDWARE)
        assert plan is not None
        assert plan.input.stripe[1] < 128
        assert plan.input.stripe[2] < 128
        assert cost(stage, best) <= cost(stage, plan)


def cost(stage: Stage, plan: McePlan) -> int:
    """Return the input traffic of a plan, counting half where the output can be compressed."""
    deep = -(-stage.output[3] // plan.output.stripe[3])
    traffic = input_traffic_bytes(
        stage.input, plan.input.stripe, stage.kernel, stage.weight_format, deep, HARDWARE
    )
    whole = any(consists_of_cells(form, plan.output.stripe[1:]) for form in CELLS)
    return traffic // 2 if whole else traffic


@pytest.mark.parametrize(
    ("stripe", "deep", "traffic"),
    [
        ((1, 64, 64, 64), 1, 64 * 64),
        # Rows only: the tile holds the neighbours.
        ((1, 16, 64, 64), 1, 64 * 64),
        # Read again for every stripe of output channels, if there are stripes.
        ((1, 16, 64, 64), 3, 3 * 64 * 64),
        ((1, 64, 64, 64), 3, 64 * 64),
        # Both ways: 8 rows above and below at each of three borders.
        ((1, 16, 16, 64), 1, (64 + 2 * 8 * 3) * 64),
        # Channels too: for each 16 outputs, and the columns beside.
        ((1, 16, 16, 16), 1, 4 * (64 + 2 * 8 * 3) * (64 + 2 * 16 * 3)),
    ],
)
def test_input_traffic(stripe: Shape, deep: int, traffic: int) -> None:
    stage = convolution()
    found = input_traffic_bytes(
        stage.input, stripe, stage.kernel, stage.weight_format, deep, HARDWARE
    )
    assert found == traffic * 64


def test_channels_are_streamed_where_no_strategy_has_room() -> None:
    """A stripe of 2,048 channels does not fit; half of them do, then the other half."""
    stage = convolution((1, 16, 16, 2048), 16)
    small = 24 * 1024
    assert chosen(stage, small) is None
    plan = stream_channels(stage, BLOCK_CONFIGS, ((0, small),), HARDWARE)
    assert plan is not None
    assert plan.strategy is Strategy.STRATEGY_X
    assert plan.input.stripe[3] < 2048
    assert plan.weights.stripe[2] == plan.input.stripe[3]
    assert plan.block.width * plan.block.height <= HARDWARE.accumulators_per_og


def test_matrix_products_stream_their_weights() -> None:
    product = replace(
        convolution((1, 8, 8, 64), 100, 1),
        operation=MceOperation.FULLY_CONNECTED,
        mce_output=(1, 1, 1, 100),
        output=(1, 1, 1, 100),
        kernel=(1, 1, 4096, 100),
        pad_top=0,
        pad_left=0,
    )
    eight = tuple(block for block in BLOCK_CONFIGS if str(block) == "8x8")
    plan = stream_channels(product, eight, ((0, BANK),), HARDWARE)
    assert plan is not None
    # All inputs at once, 16 outputs at a time, the weights of the next 16 beside.
    assert plan.input.stripe == (1, 8, 8, 64)
    assert plan.weights.stripe == (1, 1, 4096, 16)
    assert plan.weights.stripes == 2
    assert plan.output.stripe == (1, 8, 8, 16)


def test_a_map_in_sram_is_not_streamed() -> None:
    kept = replace(convolution(), input_offset_bytes=4096)
    assert stream_channels(kept, BLOCK_CONFIGS, ((0, BANK),), HARDWARE) is None


EXTENTS = st.integers(1, 200)


@given(
    st.tuples(st.just(1), EXTENTS, EXTENTS, EXTENTS),
    EXTENTS,
    st.sampled_from([1, 2, 3, 5, 7]),
    st.integers(8, BANK // 1024),
    st.sets(st.sampled_from(CHOOSABLE_STRATEGIES), min_size=1),
    st.booleans(),
)
def test_tiles_lie_within_their_banks_and_apart(
    shape: Shape, outputs: int, side: int, kib: int, strategies: set[Strategy], deep: bool
) -> None:
    stage = depthwise(shape) if deep else convolution(shape, outputs, side)
    for plan in (
        chosen(stage, kib * 1024, tuple(strategies)),
        None if deep else stream_channels(stage, BLOCK_CONFIGS, ((0, kib * 1024),), HARDWARE),
    ):
        if plan is None:
            continue
        tiles = [(plan.ple_offset_bytes, HARDWARE.max_ple_bytes)]
        for tile in (plan.input, plan.weights, plan.output):
            assert tile.bytes % HARDWARE.srams == 0
            tiles.append((tile.offset_bytes, tile.bytes // HARDWARE.srams))
        tiles.sort()
        for (begin, size), (following, _) in pairwise(tiles):
            assert begin + size <= following
        assert tiles[0][0] >= 0
        assert sum(tiles[-1]) <= kib * 1024
