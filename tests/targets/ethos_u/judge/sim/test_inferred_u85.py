"""What no compiler's stream for Ethos-U85 exercises, in streams of our own.

Expected results follow from the documented meaning in plain NumPy, and each program says that it
takes an inferred path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.sim import Outcome, Simulator
from mizzen.targets.ethos_u.machine.commands_values import (
    AccInputU85,
    AccOutputU85,
    ActivationFunctionU85,
    DmaStrideMode,
    PoolingModeU85,
    ResizeModeU85,
    ReverseU85,
    RoundModeOfmU85,
    Storage,
    TransposeU85,
)

from . import assembler
from .assembler import IFM, IFM2, OFM, U85_256, Settings, Tensor, feature_map, window

Array = npt.NDArray[Any]
SHAPE = (4, 3, 5)


def random(shape: tuple[int, ...] = SHAPE, dtype: npt.DTypeLike = np.int8, seed: int = 0) -> Array:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def result(shape: tuple[int, int, int], dtype: npt.DTypeLike, **precision: int) -> Settings:
    """SET commands of the output: in blocks of 16, unscaled, not clipped."""
    return assembler.result(shape, dtype, **precision) | {
        "SET_OFM_BLK_HEIGHT_M1": {"height": 16},
        "SET_OFM_BLK_WIDTH_M1": {"width": 16},
        "SET_OFM_BLK_DEPTH_M1": {"depth": 16},
        "SET_OFM_SCALE": {"scale": 1},
        "SET_ACTIVATION": {"activation_clip_range": 1},
    }


def simulated(
    made: Iterable[Instruction],
    inputs: Sequence[Array],
    output: Tensor,
    constants: npt.NDArray[np.uint8] | None = None,
) -> Outcome:
    given = [(x.shape, x.dtype) for x in inputs]
    simulator = Simulator(U85_256.program(made, given, output, constants))
    return simulator.run([x[None] for x in inputs], 1)


def run(
    made: Iterable[Instruction],
    inputs: Sequence[Array],
    output: Tensor,
    constants: npt.NDArray[np.uint8] | None = None,
) -> tuple[Array, list[str]]:
    """Execute; gives the output and the codes of the notes."""
    outcome = simulated(made, inputs, output, constants)
    return outcome.outputs[0][0], [row.code for row in outcome.diagnostics]


def pool(mode: PoolingModeU85, **settings: dict[str, int]) -> list[Instruction]:
    """POOL of one element to 32 bits; `settings` replace SET commands."""
    base = feature_map("IFM", SHAPE, np.int8, IFM) | result(SHAPE, np.int32) | window(1, 1)
    return U85_256.commands(base | settings, "OP_POOL", pooling_mode=mode)


def fault(made: list[Instruction], *inputs: Array) -> str:
    with pytest.raises(MizzenError) as caught:
        simulated(made, inputs, (SHAPE, np.int32))
    return str(caught.value)


class TestBranch:
    def test_it_passes_over_commands(self) -> None:
        skipped = pool(PoolingModeU85.MAX)
        target = 4 * (2 + sum(item.command.words for item in skipped))
        branch = U85_256["OP_BRANCH"](branch_cond=0, branch_target=target)
        x = random()
        made = [branch, *skipped, *U85_256.commands({}, "OP_IRQ", mask=0)]
        found, notes = run(made, [x], (SHAPE, np.int32))
        assert not found.any()
        assert notes == ["N665"]

    @pytest.mark.parametrize(("condition", "target"), [(1, 8), (0, 0), (0, 6), (0, 1 << 20)])
    def test_conditions_and_what_is_no_command_ahead(self, condition: int, target: int) -> None:
        branch = U85_256["OP_BRANCH"](branch_cond=condition, branch_target=target)
        said = fault([branch, *pool(PoolingModeU85.MAX)], random())
        assert said.startswith(
            "error[E614]: OP_BRANCH: a branch must be taken always and go forward to a command"
        )


class TestTransfers:
    def test_planes_of_rows(self) -> None:
        x = random((2, 3, 16))
        settings = {
            "SET_DMA0_SRC_REGION": {"region": 1, "stride_mode": DmaStrideMode.D3},
            "SET_DMA0_DST_REGION": {"region": 1},
            "SET_DMA0_SRC": {"address": IFM},
            "SET_DMA0_DST": {"address": OFM},
            "SET_DMA0_LEN": {"length": 8},
            "SET_DMA0_SIZE0": {"size": 3},
            "SET_DMA0_SIZE1": {"size": 2},
            "SET_DMA0_SRC_STRIDE0": {"stride": 16},
            "SET_DMA0_SRC_STRIDE1": {"stride": 48},
            "SET_DMA0_DST_STRIDE0": {"stride": 8},
            "SET_DMA0_DST_STRIDE1": {"stride": 24},
        }
        found, notes = run(U85_256.commands(settings, "OP_DMA_START"), [x], ((2, 3, 8), np.int8))
        assert np.array_equal(found, x[:, :, :8])
        assert notes == ["N666"]

    @pytest.mark.parametrize("scatters", [False, True])
    def test_one_row_by_its_index(self, scatters: bool) -> None:
        """A transfer of one dimension has one row, and the index says which."""
        settings = {
            "SET_DMA0_SRC_REGION": {"region": 1, "idx_mode": not scatters},
            "SET_DMA0_DST_REGION": {"region": 1, "idx_mode": scatters},
            "SET_DMA0_SRC": {"address": IFM},
            "SET_DMA0_DST": {"address": OFM},
            "SET_DMA0_LEN": {"length": 5},
            "SET_DMA0_SRC_STRIDE0": {"stride": 5},
            "SET_DMA0_DST_STRIDE0": {"stride": 5},
            "SET_DMA0_IDX_REGION": {"region": 1},
            "SET_DMA0_IDX": {"address": IFM2},
            "SET_DMA0_IDX_MAX": {"idx_max": 2},
        }
        x = random((3, 5))
        commands = U85_256.commands(settings, "OP_DMA_START")
        found, _ = run(commands, [x, np.array([2], np.int32)], ((3, 5), np.int8))
        assert np.array_equal(found[2 if scatters else 0], x[0 if scatters else 2])
        assert not found[0 if scatters else 1 :][:2].any()

    @pytest.mark.parametrize("index", [-1, 3])
    def test_an_index_out_of_range(self, index: int) -> None:
        settings = {
            "SET_DMA0_SRC_REGION": {"region": 1, "stride_mode": DmaStrideMode.D2, "idx_mode": 1},
            "SET_DMA0_DST_REGION": {"region": 1},
            "SET_DMA0_SRC": {"address": IFM},
            "SET_DMA0_DST": {"address": OFM},
            "SET_DMA0_LEN": {"length": 5},
            "SET_DMA0_SIZE0": {"size": 2},
            "SET_DMA0_SRC_STRIDE0": {"stride": 5},
            "SET_DMA0_DST_STRIDE0": {"stride": 5},
            "SET_DMA0_IDX_REGION": {"region": 1},
            "SET_DMA0_IDX": {"address": IFM2},
            "SET_DMA0_IDX_MAX": {"idx_max": 2},
        }
        said = fault(
            U85_256.commands(settings, "OP_DMA_START"),
            random((3, 5)),
            np.array([0, index], np.int32),
        )
        assert said.startswith("error[E643]: OP_DMA_START: an index must be in 0..2, and reaches ")


class TestPooling:
    def test_the_place_of_the_greatest_along_y(self) -> None:
        x = random()
        shape = (1, 3, 5)
        settings = (
            result(shape, np.int32) | window(4, 1) | {"SET_OFM_SCALE": {"scale": 1, "shift": 16}}
        )
        made = pool(PoolingModeU85.ARGMAX_Y, **settings)
        found, notes = run(made, [x], (shape, np.int32))
        assert np.array_equal(found[0], x.argmax(axis=0))
        assert notes == ["N667"]

    def test_sums_that_start_from_a_map(self) -> None:
        x, start = random(), random(dtype=np.int32) >> 2
        settings = feature_map("IFM2", SHAPE, np.int32, IFM2)
        settings |= {"SET_ACC_FORMAT": {"acc_input": AccInputU85.IFM2}}
        found, notes = run(pool(PoolingModeU85.SUM, **settings), [x, start], (SHAPE, np.int32))
        assert np.array_equal(found, x + start)
        assert notes == ["N681"]

    def test_an_average_that_is_scaled(self) -> None:
        x = random()
        shape = (3, 3, 5)
        settings = result(shape, np.int32) | window(2, 1) | {"SET_OFM_SCALE": {"scale": 3}}
        found, notes = run(pool(PoolingModeU85.AVERAGE, **settings), [x], (shape, np.int32))
        sums = x[1:].astype(int) + x[:-1]
        away = np.sign(sums) * ((np.abs(sums) + 1) // 2)
        assert np.array_equal(found, 3 * away)
        assert notes == ["N684"]


LEAVE: dict[str, int] = {"acc_output": AccOutputU85.DISABLE}
TAKE: dict[str, int] = {"acc_input": AccInputU85.KEEP}


class TestAccumulators:
    @pytest.mark.parametrize("storage", [Storage.TILE2X2, Storage.NONE])
    def test_sums_go_on(self, storage: Storage) -> None:
        x, y = random(), random(seed=1)
        place = result(SHAPE, np.int32, activation_storage=storage)
        first = pool(PoolingModeU85.SUM, **place | {"SET_ACC_FORMAT": LEAVE})
        second = pool(PoolingModeU85.SUM, SET_ACC_FORMAT=TAKE, SET_IFM_BASE0={"address": IFM2})
        found, notes = run([*first, *second], [x, y], (SHAPE, np.int32))
        assert np.array_equal(found, x.astype(int) + y)
        assert notes == ["N680"]

    def test_an_operation_that_leaves_its_sums_writes_nothing(self) -> None:
        made = pool(PoolingModeU85.SUM, SET_ACC_FORMAT=LEAVE)
        found, _ = run(made, [random()], (SHAPE, np.int32))
        assert not found.any()

    def test_nothing_was_left(self) -> None:
        said = fault(pool(PoolingModeU85.SUM, SET_ACC_FORMAT=TAKE), random())
        assert said.startswith("error[E615]: OP_POOL: accumulators must be left by the operation")

    def test_more_than_a_block(self) -> None:
        made = pool(PoolingModeU85.SUM, SET_ACC_FORMAT=LEAVE, SET_OFM_BLK_DEPTH_M1={"depth": 4})
        assert fault(made, random()).startswith(
            "error[E614]: OP_POOL: accumulators keep a block of [16, 16, 4], not an output of "
            "[4, 3, 5]"
        )


class TestResults:
    @pytest.mark.parametrize(
        ("mode", "halves", "code"),
        [
            (RoundModeOfmU85.TRUNCATE_TO_ZERO, [-1, 0, 0, 1], "N661"),
            (RoundModeOfmU85.DOUBLE_ASYMMETRIC, [-1, 0, 1, 2], "N685"),
        ],
    )
    def test_rounding(self, mode: RoundModeOfmU85, halves: list[int], code: str) -> None:
        x = np.array([-3, -1, 1, 3], np.int8).reshape(1, 1, 4)
        settings = feature_map("IFM", (1, 1, 4), np.int8, IFM) | result((1, 1, 4), np.int32)
        settings |= {"SET_OFM_SCALE": {"scale": 1, "shift": 1, "round_mode": mode}}
        found, notes = run(pool(PoolingModeU85.SUM, **settings), [x], ((1, 1, 4), np.int32))
        assert found.ravel().tolist() == halves
        assert notes == [code]

    def test_bytes_to_16_bits_by_a_table(self) -> None:
        table, x = random((256,), np.int16), random()
        load = {
            "SET_DMA0_SRC_REGION": {"region": 0},
            "SET_DMA0_DST_REGION": {"region": 3, "region_mode": 1},
            "SET_DMA0_SRC": {"address": 0},
            "SET_DMA0_DST": {"address": 512},
            "SET_DMA0_LEN": {"length": 512},
        }
        function = {"activation_function": ActivationFunctionU85.LUT_S8_S16, "table": 1}
        settings = result(SHAPE, np.int16) | {
            "SET_ACTIVATION": {**function, "activation_clip_range": 1}
        }
        made = [*U85_256.commands(load, "OP_DMA_START"), *pool(PoolingModeU85.SUM, **settings)]
        found, notes = run(made, [x], (SHAPE, np.int16), table.view(np.uint8))
        assert np.array_equal(found, table[x.astype(int) + 128])
        assert notes == ["N682"]

    def test_a_table_of_bytes_gives_bytes(self) -> None:
        function = {"activation_function": ActivationFunctionU85.LUT_S8_S8, "table": 1}
        settings = result(SHAPE, np.int16) | {
            "SET_ACTIVATION": {**function, "activation_clip_range": 1}
        }
        with pytest.raises(MizzenError) as caught:
            run(pool(PoolingModeU85.SUM, **settings), [random()], (SHAPE, np.int16))
        assert str(caught.value).startswith(
            "error[E614]: OP_POOL: the output of this table must have 8 bits an element"
        )

    def test_transposed_and_reversed(self) -> None:
        x = random()
        out = (3, 4, 5)
        turned = {"activation_transpose": TransposeU85.WHC, "activation_reverse": ReverseU85.H}
        settings = result(SHAPE, np.int32, **turned) | {
            name: fields
            for name, fields in feature_map("OFM", out, np.int32, OFM).items()
            if "PRECISION" not in name
        }
        found, notes = run(pool(PoolingModeU85.SUM, **settings), [x], (out, np.int32))
        assert np.array_equal(found, x[::-1].transpose(1, 0, 2))
        assert notes == ["N683"]

    def test_three_tiles_one_below_the_other(self) -> None:
        x = random()
        row = 15
        settings = feature_map("IFM", SHAPE, np.int8, IFM, activation_storage=Storage.TILE3X1) | {
            "SET_IFM_HEIGHT0_M1": {"height": 1},
            "SET_IFM_HEIGHT1_M1": {"height": 3},
            "SET_IFM_BASE0": {"address": IFM + 3 * row},
            "SET_IFM_BASE1": {"address": IFM + row},
            "SET_IFM_BASE2": {"address": IFM},
        }
        found, notes = run(pool(PoolingModeU85.SUM, **settings), [x], (SHAPE, np.int32))
        assert np.array_equal(found, x[[3, 1, 2, 0]])
        assert notes == ["N669"]


def test_a_resize_that_replicates() -> None:
    x = random()
    shape = (8, 9, 5)
    settings = feature_map("IFM", SHAPE, np.int8, IFM) | result(shape, np.int32)
    settings |= {
        "SET_KERNEL_HEIGHT_M1": {"height": 4},
        "SET_OFM_SCALE": {"scale": 1, "shift": 16},
        "SET_RESIZE_Y_SCALE_N_M1": {"resize_y_scale_n": 2},
        "SET_RESIZE_X_SCALE_N_M1": {"resize_x_scale_n": 3},
        "SET_RESIZE_Y_OFFSET": {},
        "SET_RESIZE_X_OFFSET": {},
        "SET_RESIZE_Y": {"one_step_mod": 1},
        "SET_RESIZE_X": {"one_step_mod": 1},
    }
    made = U85_256.commands(settings, "OP_RESIZE", resize_mode=ResizeModeU85.REPLICATE)
    found, notes = run(made, [x], (shape, np.int32))
    assert np.array_equal(found, x.repeat(2, axis=0).repeat(3, axis=1))
    assert notes == ["N668"]
