"""What is lifted out of a stream computes what the simulator computes from the stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.conformance.cases import cases
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import (
    Box,
    Bytes,
    Convolution,
    Copy,
    Elementwise,
    Pooling,
    Role,
    Sequence,
    Tiles,
    maps_read,
)
from mizzen.targets.ethos_u.generator.schedule import plain
from mizzen.targets.ethos_u.judge.hazards import Surroundings, find_hazards
from mizzen.targets.ethos_u.judge.sim.machine import Simulator
from mizzen.targets.ethos_u.lift import lift
from mizzen.targets.ethos_u.machine.commands import encode
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

from ..generator.interpreter import interpret  # noqa: TID252 tests are no package with a name
from ..judge.hazards.maker import Maker  # noqa: TID252 tests are no package with a name
from ..judge.sim.assembler import (  # noqa: TID252 tests are no package with a name
    IFM,
    IFM2,
    OFM,
    U55_128,
    U85_256,
    activation,
    feature_map,
    result,
    window,
)

CASES = {case.name: case for case in cases()}
LARGEST = 1000
"""Of 32-bit inputs, whose products the machine would not hold else."""


def programs(model: Path | bytes, accelerator: str, **options: Any) -> Iterator[Program]:
    """Compile a network with Vela, and return what there is on the NPU."""
    vela = {"generator": "vela"}
    artifact = mizzen.compile(model, accelerator, prove="off", target_options=vela, **options)
    for step in artifact.steps:
        if isinstance(step, NpuStep):
            yield step.program


def random_inputs(program: Program) -> list[npt.NDArray[Any]]:
    generator = np.random.default_rng(0)
    found: list[npt.NDArray[Any]] = []
    for row in program.inputs:
        low, high = -LARGEST, LARGEST
        if row.dtype.itemsize < 4:
            info = np.iinfo(row.dtype.name)
            low, high = int(info.min), int(info.max)
        values = generator.integers(low, high, row.shape, endpoint=True)
        found.append(values.astype(row.dtype))
    return found


def require_same(program: Program, sequence: Sequence) -> None:
    inputs = random_inputs(program)
    expected = Simulator(program).run([values[None] for values in inputs], 1).outputs
    found = interpret(sequence, inputs)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.ravel(), theirs.ravel())


def require_same_programs(ours: Program, theirs: Program) -> None:
    inputs = [values[None] for values in random_inputs(theirs)]
    shaped = replace(
        ours,
        inputs=tuple(
            replace(row, shape=other.shape)
            for row, other in zip(ours.inputs, theirs.inputs, strict=True)
        ),
    )
    found, expected = (Simulator(program).run(inputs, 1) for program in (shaped, theirs))
    pairs = (found.outputs, expected.outputs), (found.variables, expected.variables)
    for one, other in pairs:
        for mine, their in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine.ravel(), their.ravel())


def free_share(sequence: Sequence) -> float:
    """Return the share of tensors in the program's own memory that may have any layout."""
    scratch = [row for row in sequence.tensors if row.role is Role.SCRATCH]
    return sum(row.layout is None for row in scratch) / max(1, len(scratch))


@pytest.mark.parametrize(
    ("name", "accelerator"),
    [
        ("kws_ref_model", "ethos-u55-128"),
        ("kws_ref_model", "ethos-u65-512"),
        ("pretrainedResnet_quant", "ethos-u55-32"),
        ("ad01_int8", "ethos-u65-256"),
    ],
)
def test_networks(name: str, accelerator: str, model_file: Callable[[str], Path]) -> None:
    for program in programs(model_file(f"{name}.tflite"), accelerator):
        sequence = lift(program)
        require_same(program, sequence)
        assert free_share(sequence) > 0.5


def test_slices_are_put_together(model_file: Callable[[str], Path]) -> None:
    """Vela cuts the first convolution in 16 and 48 channels, and stages each layer's weights."""
    (program,) = programs(model_file("kws_ref_model.tflite"), "ethos-u55-128")
    commands = Counter(row.command.name for row in program.instructions)
    assert (commands["OP_CONV"], commands["OP_DEPTHWISE"]) == (7, 4)
    sequence = lift(program)
    found = [row for row in sequence.operations if isinstance(row, Convolution)]
    assert [row.weights.shape for row in found[:3]] == [
        (64, 10, 4, 1), (64, 3, 3, 1), (64, 1, 1, 64),
    ]  # fmt: skip
    assert len(found) == 10
    assert sequence.tensors[found[0].ofm.tensor].shape == (25, 5, 64)
    kinds = Counter(type(row).__name__ for row in sequence.operations)
    assert kinds["Copy"] == 0


@pytest.mark.parametrize("name", ["kws_micronet_m", "person_detect"])
def test_stripes_are_put_together(name: str, model_file: Callable[[str], Path]) -> None:
    """For size Vela works by stripes and keeps few rows of what is between them."""
    file = model_file(f"{name}.tflite")
    (cut,) = programs(file, "ethos-u55-128", optimise="Size")
    (uncut,) = programs(file, "ethos-u55-128")
    assert len(cut.instructions) > 1.2 * len(uncut.instructions)
    sequence, expected = lift(cut), lift(uncut)
    require_same(cut, sequence)
    for ours, theirs in zip(sequence.operations, expected.operations, strict=True):
        if not isinstance(ours, Copy) and not isinstance(theirs, Copy):
            assert (ours.ifm.shape, ours.ofm.shape) == (theirs.ifm.shape, theirs.ofm.shape)


QUICK = (
    "batch_matmul",
    "concatenation_h_int8",
    "conv_1x6x6x5_o4_k3x3_s1x1_d1x1_same_int16",
    "dw_1x16x16x5",
    "mean_1x5x9x8",
    "mul_1x5x1x7_1x5x6x7_int16",
    "pack_last",
    "resize_bilinear_2",
    "softmax_1x6x5x10_int8",
    "split_v_int16",
    "strided_slice_int32",
    "tconv_1x6x6x5",
    "transpose_0321_uint8",
    "unpack_int16",
)
"""Beginnings of the names of cases that lay out maps in every way that there is."""


@pytest.mark.parametrize("start", QUICK)
def test_operators(start: str) -> None:
    chosen = [name for name in CASES if name.startswith(start)]
    assert chosen
    for program in programs(CASES[chosen[0]].build(), "ethos-u55-128"):
        require_same(program, lift(program))


def test_views_of_free_tensors_are_boxes(model_file: Callable[[str], Path]) -> None:
    (program,) = programs(model_file("pretrainedResnet_quant.tflite"), "ethos-u55-128")
    sequence = lift(program)
    for operation in sequence.operations:
        for row in (*maps_read(operation), getattr(operation, "ofm", None)):
            if row is not None and sequence.tensors[row.tensor].layout is None:
                assert isinstance(row.view, Box)


SHAPE = (2, 3, 16)
POOL = {
    **feature_map("IFM", SHAPE, np.int8, 0),
    **result(SHAPE, np.int8, scale_mode=1),
    **window(1, 1),
    **activation(-128, 127),
    "SET_OFM_SCALE": {"scale": 1, "shift": 0},
}


def pooling(**changed: dict[str, int]) -> Program:
    """Return a program of one average over one element, with registers that are changed."""
    made = U55_128.commands({**POOL, **changed}, "OP_POOL", pooling_mode=1)
    return U55_128.program(made, [(SHAPE, np.int8)], (SHAPE, np.int8))


def refusal(program: Program) -> str:
    with pytest.raises(MizzenError) as caught:
        lift(program)
    return caught.value.diagnostic.render()


def test_a_program_by_hand() -> None:
    program = pooling()
    sequence = lift(program)
    assert [(row.shape, row.role) for row in sequence.tensors] == [
        (SHAPE, Role.INPUT), (SHAPE, Role.OUTPUT),
    ]  # fmt: skip
    require_same(program, sequence)


def test_tiles_that_have_no_element_lie_at_the_first() -> None:
    """Compilers leave any address in their registers."""
    below = {"address": 0x2000 + 3 * 16}
    program = pooling(SET_OFM_HEIGHT0_M1={"height": 1}, SET_OFM_BASE2=below)
    sequence = lift(program)
    (operation,) = sequence.operations
    assert isinstance(operation, Pooling)
    assert isinstance(operation.ofm.view, Bytes)
    assert operation.ofm.view.tiles == Tiles(1, 2, 3, (0, 48, 0))
    require_same(program, sequence)


def test_what_nobody_wrote_is_refused() -> None:
    assert refusal(pooling(SET_IFM_BASE0={"address": 48})) == (
        "error[E273]: OP_POOL: all that is read must have been written, and some of bytes "
        "48..144 of region 1 has not\n"
        "  at   command at word 57\n"
        "  help another NPU operator of the network may have left it there: keep the compiler's "
        "own words for both"
    )


def test_a_map_outside_its_region_is_refused() -> None:
    assert refusal(pooling(SET_OFM_BASE0={"address": 0x2FF0})).startswith(
        "error[E273]: OP_POOL: bytes 12272..12368 must lie within the 12288 bytes of region 1"
    )


def test_a_table_beyond_the_memory_of_the_npu_is_refused() -> None:
    """Vela 5.2 may put a table behind the last slot."""
    maker = Maker("ethos-u55-64")
    maker.dma(0, 16384, 256, source_region=0, inside=True)
    assert refusal(maker.program([], (0x400, 16))).startswith(
        "error[E273]: OP_DMA_START: bytes 16384..16640 must lie within the 16384 bytes of the "
        "NPU's own memory\n"
    )


def test_a_register_that_was_not_set_is_refused() -> None:
    settings = {name: values for name, values in POOL.items() if name != "SET_IFM_UPSCALE"}
    made = U55_128.commands(settings, "OP_POOL", pooling_mode=1)
    program = U55_128.program(made, [(SHAPE, np.int8)], (SHAPE, np.int8))
    assert refusal(program).startswith(
        "error[E272]: OP_POOL: SET_IFM_UPSCALE must be set before, and no command has set it"
    )


def test_a_pool_without_its_scale_is_refused() -> None:
    ofm = feature_map("OFM", SHAPE, np.int8, 0x2000)["SET_OFM_PRECISION"]
    assert refusal(pooling(SET_OFM_PRECISION=ofm)).startswith(
        "error[E271]: OP_POOL: a pooling operation must take its scale from OFM_SCALE"
    )


def test_weights_that_are_computed_are_refused(model_file: Callable[[str], Path]) -> None:
    """Without its transfers a stream reads weights from what was never filled."""
    (program,) = programs(model_file("kws_ref_model.tflite"), "ethos-u55-128")
    kept = [row for row in program.instructions if row.command.name != "OP_DMA_START"]
    broken = replace(program, words=encode(kept, U55_128.arch))
    assert refusal(broken).startswith(
        "error[E274]: OP_CONV: the weights must come from constants, and bytes "
    )


def test_another_machine_is_refused() -> None:
    made = U85_256.commands({}, "OP_DMA_START")
    program = U85_256.program(made, [], ((1, 1, 1), np.int8))
    assert refusal(program) == (
        "error[E270]: streams of Ethos-U55 and U65 can be lifted, and this one is of "
        "ethos-u85-256\n"
        "  help keep the compiler's own words"
    )


def test_transfers_of_half_a_line_of_memory_go_through_the_array() -> None:
    """A line that holds two tensors becomes two copies, which U55 has no transfer for."""
    maker = byte_copies()
    half = 1, 1, 8
    maker.copy(0x100, 0x200, half)
    maker.add("OP_KERNEL_WAIT", n=0)
    maker.dma(0x200, 0x300, 16)
    maker.add("OP_DMA_WAIT", k=0)
    for at in (0, 8):
        maker.copy(0x300 + at, 0x400 + at, half)
    program = maker.program([(0x100, 8), (0x200, 16)], (0x400, 16))
    sequence = lift(program)
    emit(plain(sequence, resolve("ethos-u55-128")), ACCELERATORS["ethos-u55-128"])


ROW_BYTES = 48


def differences(firsts: tuple[int, ...], seconds: tuple[int, ...], height: int = 1) -> Program:
    """Return a program that subtracts stripes of some rows, which begin at these of both inputs.

    The second one has one row, repeated where a stripe has more.
    """
    made: list[Any] = []
    stripe, rows = (height, *SHAPE[1:]), (height * len(firsts), *SHAPE[1:])
    for number, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        settings = {
            **feature_map("IFM", stripe, np.int8, IFM + first * ROW_BYTES),
            **feature_map("IFM2", (1, *SHAPE[1:]), np.int8, IFM2 + second * ROW_BYTES),
            **result(stripe, np.int8),
            "SET_OFM_BASE0": {"address": OFM + number * height * ROW_BYTES},
            **activation(-128, 127),
            **{name: {"scale": 1} for name in ("SET_OPA_SCALE", "SET_OPB_SCALE", "SET_OFM_SCALE")},
            "SET_IFM_UPSCALE": {},
            "SET_IFM2_BROADCAST": {"broadcast_h": int(height > 1)},
        }
        made += U55_128.commands(settings, "OP_ELEMENTWISE", elementwise_mode=ElementwiseMode.SUB)
    return U55_128.program(made, [(rows, np.int8), (rows, np.int8)], (rows, np.int8))


@pytest.mark.parametrize(
    ("program", "count", "swapped"),
    [
        (differences((0, 1), (0, 1)), 1, False),
        (differences((0, 1), (0, 0)), 1, False),
        (differences((0, 0), (0, 1)), 1, True),
        (differences((0, 0), (0, 0)), 2, False),
        (differences((0, 2), (0, 0), height=2), 1, False),
        (differences((0, 2), (0, 2), height=2), 2, False),
    ],
)
def test_rows_that_stripes_repeat_are_those_of_the_second_operand(
    program: Program, count: int, swapped: bool
) -> None:
    """No register says of the first operand that its rows are repeated."""
    sequence = lift(program)
    require_same(program, sequence)
    assert len(sequence.operations) == count
    for row in sequence.operations:
        assert isinstance(row, Elementwise)
        assert (row.ifm.shape, row.reversed) == (row.ofm.shape, swapped)
    made = emit(plain(sequence, resolve("ethos-u55-128")), ACCELERATORS["ethos-u55-128"])
    assert not find_hazards(made).findings
    require_same_programs(made, program)


def byte_copies() -> Maker:
    """Return a maker of streams of copies that change nothing."""
    maker = Maker("ethos-u55-128")
    for name in ("SET_IFM_ZERO_POINT", "SET_OFM_ZERO_POINT"):
        maker.add(name)
    maker.add("SET_OFM_SCALE", scale=1)
    maker.add("SET_ACTIVATION_MIN", clip_boundary=-128)
    maker.add("SET_ACTIVATION_MAX", clip_boundary=127)
    maker.add("SET_KERNEL_WIDTH_M1", width=1)
    return maker


@pytest.mark.parametrize(("written", "changed"), [(8, []), (6, [(6, 2)]), (0, [(0, 8)])])
def test_of_a_state_only_what_changes_is_written(
    written: int, changed: list[tuple[int, int]]
) -> None:
    """The state is read at once with what is written to or behind it, as one map."""
    maker = byte_copies()
    maker.copy(0x200, 0x100 + written, (1, 1, 8))
    maker.copy(0x100, 0x300, (1, 1, 8 + written))
    program = maker.program([(0x100, 8), (0x200, 8)], (0x300, 8 + written))
    state, other = program.inputs
    program = replace(program, inputs=(replace(state, variable=True), other))
    sequence = lift(program)
    written_to = [
        row.ofm
        for row in sequence.operations
        if isinstance(row, Pooling) and sequence.tensors[row.ofm.tensor].role is Role.STATE
    ]
    found = [
        (row.view.start[2] if isinstance(row.view, Box) else row.view.offset_bytes, row.elements)
        for row in written_to
    ]
    assert found == changed
    made = emit(plain(sequence, resolve("ethos-u55-128")), ACCELERATORS["ethos-u55-128"])
    require_same_programs(made, program)


def test_what_holds_nothing_is_not_carried_to_a_tensor_of_its_own() -> None:
    """Of two rows of bricks with two channels the first is given, and both are read at once."""
    maker = byte_copies()
    bricks, below = {"bricks": True, "split": (2, 2, 4)}, 4 * 16
    maker.copy(0x200, 0x100 + below, (1, 4, 2), ofm_layout=bricks)
    maker.copy(0x100, 0x300, (2, 4, 2), ifm_layout=bricks)
    program = maker.program([(0x100, below - 14), (0x200, 8)], (0x300, 16))
    pixels = [(0x100 + 16 * column, 0x102 + 16 * column) for column in range(4)]
    for held in (None, {1: [*pixels, (0x200, 0x208)]}):
        sequence = lift(program, held)
        require_same(program, sequence)
        made = emit(plain(sequence, resolve("ethos-u55-128")), ACCELERATORS["ethos-u55-128"])
        first, second = (row.offset for row in made.inputs)
        moved = [(first + start - 0x100, first + stop - 0x100) for start, stop in pixels]
        around = Surroundings({1: [*moved, (second, second + 8)]}, frozenset({0}))
        found = find_hazards(made, around).findings
        assert [row.diagnostic.code for row in found] == (["E674"] if held is None else [])


def test_what_holds_nothing_is_not_read() -> None:
    with pytest.raises(MizzenError, match="must have been written"):
        lift(pooling(), {1: [(IFM, IFM + 95)]})
    assert lift(pooling(), {1: [(IFM, IFM + 96)]}).operations
