"""Programs that must not give an answer: every fault says what and where, in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import (
    Command,
    Convert,
    DataTypeCode,
    Format,
    Location,
    MceOperation,
    McePle,
    PleOperation,
    PleRecord,
    TensorRecord,
    Upsample,
)
from mizzen.targets.ethos_n.program import BufferKind, program_of
from mizzen.targets.ethos_n.sim import Simulator

from .assembler import (
    FURTHER,
    INPUT,
    OUTPUT,
    SRAM_INPUT,
    SRAM_OUTPUT,
    WEIGHTS,
    Kernel,
    Table,
    encoded,
    mce_ple,
    ple_only,
    program,
    source,
    table,
    target,
    tensor,
)

SHAPE = (8, 8, 16)
BYTES = 1024
ONE_IN_ONE_OUT = table([BYTES], BYTES)
KERNEL = Kernel.identity(16)
PLAIN = mce_ple(KERNEL, source(SHAPE), SHAPE, target(SHAPE))


def fault(commands: Sequence[Command], buffers: Table = ONE_IN_ONE_OUT) -> str:
    """Return what planning a program says, with the weights of `PLAIN` if it needs any."""
    passes = [command for command in commands if isinstance(command, McePle)]
    weights = encoded(KERNEL, PLAIN) if passes else None
    with pytest.raises(MizzenError) as caught:
        Simulator(program(commands, buffers, weights))
    return caught.value.diagnostic.render()


def with_mce(**changes: Any) -> McePle:
    return replace(PLAIN, mce=replace(PLAIN.mce, **changes))


def copied(data: TensorRecord, output: TensorRecord) -> Convert:
    return Convert(replace(data, sram_offset_bytes=0), replace(output, sram_offset_bytes=0))


def test_the_programs_that_the_faults_vary_are_right() -> None:
    values = np.arange(BYTES).astype(np.uint8).reshape(1, -1)
    commands: list[Command] = [PLAIN]
    passed = Simulator(program(commands, ONE_IN_ONE_OUT, encoded(KERNEL, PLAIN)))
    np.testing.assert_array_equal(passed.run([values], 1).outputs[0], values)
    moved = Simulator(program([copied(source(SHAPE), target(SHAPE))], ONE_IN_ONE_OUT))
    np.testing.assert_array_equal(moved.run([values], 1).outputs[0], values)


AT = "\n  at   command at word 4"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            copied(source(SHAPE, dram_buffer_id=99), target(SHAPE)),
            "error[E950]: command 0 CONVERT: input must be in a buffer of the table, which has 5, "
            "not in buffer 99" + AT,
        ),
        (
            copied(source((8, 8, 17)), target((8, 8, 17))),
            "error[E950]: command 0 CONVERT: input must lie in buffer 1 of 1024 bytes, and needs "
            "1088" + AT + "\n  help the command stream is damaged or belongs to another container",
        ),
        (
            copied(source(SHAPE), target(SHAPE, dram_buffer_id=INPUT)),
            "error[E951]: command 0 CONVERT: output must be an output or an intermediate, and "
            "buffer 1 is among the inputs" + AT,
        ),
        (
            copied(source(SHAPE, dram_buffer_id=OUTPUT), target(SHAPE)),
            "error[E952]: command 0 CONVERT: input must read what was written to buffer 2, and "
            "reads 1024 bytes that nothing wrote" + AT,
        ),
        (
            copied(source(SHAPE, format=Format.NHWCB_COMPRESSED), target(SHAPE)),
            "error[E954]: command 0 CONVERT: input must be in one of NHWC, NCHW, NHWCB, FCAF_DEEP, "
            "FCAF_WIDE, not NHWCB_COMPRESSED" + AT,
        ),
        (
            copied(
                source(
                    (8, 8, 8),
                    format=Format.NHWCB,
                    supertensor_shape=(1, 8, 8, 16),
                    supertensor_offset=(0, 0, 0, 8),
                ),
                target((8, 8, 8)),
            ),
            "error[E954]: command 0 CONVERT: input must be whole cells of 16 along C in NHWCB, not "
            "8..16" + AT,
        ),
        (
            copied(source(SHAPE, supertensor_offset=(0, 0, 1, 0)), target(SHAPE)),
            "error[E955]: command 0 CONVERT: input must be a part of its supertensor, which has W "
            "8, not 1..9" + AT,
        ),
        (
            copied(source(SHAPE, shape=(2, *SHAPE)), target(SHAPE)),
            "error[E955]: command 0 CONVERT: input must have N 1, not 2" + AT,
        ),
        (
            Convert(source(SHAPE, sram_offset_bytes=57217), target(SHAPE)),
            "error[E956]: command 0 CONVERT: input must lie within the 57344 bytes of a bank of "
            "SRAM, not at 57217..57345" + AT,
        ),
        (
            replace(PLAIN, output=target(SHAPE, sram_offset_bytes=SRAM_INPUT + 127)),
            "error[E957]: command 0 MCE_PLE: tiles must not overlap, and input at 4096..4224 meets "
            "output at 4223..4351" + AT,
        ),
        (
            replace(PLAIN, input=source(SHAPE, sram_offset_bytes=4000)),
            "error[E957]: command 0 MCE_PLE: tiles must not overlap, and kernel at 0..4096 meets "
            "input at 4000..4128" + AT,
        ),
        (
            replace(PLAIN, input=source(SHAPE, location=Location.SRAM)),
            "error[E958]: command 0 MCE_PLE: input must have been left in SRAM at 4096 by a pass "
            "before it, and nothing was" + AT,
        ),
        (
            replace(PLAIN, output=target(SHAPE, stripe_shape=(1, 8, 8, 12))),
            "error[E959]: command 0 MCE_PLE: output must have stripes of a multiple of 8 along C, "
            "not 12" + AT,
        ),
        (
            replace(PLAIN, output=target(SHAPE, tile_bytes=1023)),
            "error[E959]: command 0 MCE_PLE: output must have a tile of at least one stripe, 1024 "
            "bytes, not of 1023" + AT,
        ),
        (
            replace(
                PLAIN,
                output=target(
                    SHAPE, location=Location.SRAM, stripe_shape=(1, 8, 8, 8), tile_bytes=512
                ),
            ),
            "error[E959]: command 0 MCE_PLE: output must be in SRAM as a whole, 1024 bytes in "
            "stripes that follow one another: its shape is 1x8x8x16, its stripes 1x8x8x8, its "
            "tile 512 bytes" + AT,
        ),
        (
            replace(
                PLAIN,
                output=target((16, 16, 16), location=Location.SRAM, stripe_shape=(1, 16, 8, 16)),
            ),
            "error[E959]: command 0 MCE_PLE: output must be in SRAM as a whole, 4096 bytes in "
            "stripes that follow one another: its shape is 1x16x16x16, its stripes 1x16x8x16, "
            "its tile 4096 bytes" + AT,
        ),
        (
            replace(
                PLAIN,
                input=source(
                    SHAPE, location=Location.SRAM, stripe_shape=(1, 8, 8, 8), tile_bytes=512
                ),
            ),
            "error[E959]: command 0 MCE_PLE: input must be in SRAM as a whole, 1024 bytes, and has "
            "a tile of 512" + AT,
        ),
        (
            replace(PLAIN, weights=replace(PLAIN.weights, tile_bytes=100)),
            "error[E959]: command 0 MCE_PLE: weights must have a tile of at least one stripe, 256 "
            "bytes, not of 100" + AT,
        ),
        (
            replace(PLAIN, ple=PleRecord(0, 0, PleOperation.MAXPOOL_2X2_2_2)),
            "error[E960]: command 0 MCE_PLE: output must have the extents that the kernel makes, "
            "(1, 4, 4, 16), not (1, 8, 8, 16)" + AT,
        ),
        (
            replace(PLAIN, ple=PleRecord(0, 0, PleOperation.MEAN_XY_7X7)),
            "error[E960]: command 0 MCE_PLE: output must be the mean of planes of 7 x 7, not of "
            "8 x 8" + AT,
        ),
        (
            copied(source(SHAPE), target((8, 8, 15))),
            "error[E960]: command 0 CONVERT: output must have the extents of the input, "
            "(1, 8, 8, 16), not (1, 8, 8, 15)" + AT,
        ),
        (
            with_mce(uninterleaved_input_shape=(1, 8, 8, 15)),
            "error[E960]: command 0 MCE_PLE: the input must be 1x8x8x15, made of 1x8x8x15, not "
            "1x8x8x16" + AT,
        ),
        (
            with_mce(pad_top=1),
            "error[E960]: command 0 MCE_PLE: this output needs 1 rows of zeros before the input "
            "and -1 after it; there must be less than 1, and at most 1 left over" + AT,
        ),
        (
            with_mce(operation=MceOperation.CONVOLUTION),
            "error[E961]: command 0 MCE_PLE: CONVOLUTION of 16 to 16 channels must not have "
            "weights of 1x1x16x1" + AT,
        ),
        (
            with_mce(stride_x=2),
            "error[E962]: command 0 MCE_PLE: strides must be 1 x 1 or 2 x 2, not 2 x 1" + AT,
        ),
        (
            with_mce(stride_x=2, stride_y=2, upsample=Upsample.BILINEAR),
            "error[E962]: command 0 MCE_PLE: a stride of 2 must go without BILINEAR upsampling"
            + AT,
        ),
        (
            replace(PLAIN, weights=replace(PLAIN.weights, shape=(10, 1, 16, 1))),
            "error[E962]: command 0 MCE_PLE: kernels must have 1 to 9 rows and columns, not "
            "10 x 1" + AT,
        ),
        (
            with_mce(activation_min=30, activation_max=20),
            "error[E963]: command 0 MCE_PLE: bounds of the activation must be ascending numbers "
            "of U8, not 30..20" + AT,
        ),
        (
            with_mce(output_zero_point=-1),
            "error[E963]: command 0 MCE_PLE: the zero point of the output must be 0 to 255, not -1"
            + AT,
        ),
        (
            with_mce(output_zero_point=5),
            "error[E963]: command 0 MCE_PLE: the zero point must be the same in the command, 5, "
            "and in the weight stream, 0" + AT,
        ),
        (
            copied(source(SHAPE, data_type=DataTypeCode.S8), target(SHAPE)),
            "error[E963]: command 0 CONVERT: input must have the output's type, U8, not S8" + AT,
        ),
        (
            replace(PLAIN, ple=PleRecord(0, 0, PleOperation.FAULT)),
            "error[E964]: command 0 MCE_PLE: the kernel must be one of INTERLEAVE_2X2_2_2, "
            "MAXPOOL_2X2_2_2, MAXPOOL_3X3_2_2_EVEN, MAXPOOL_3X3_2_2_ODD, MEAN_XY_7X7, "
            "MEAN_XY_8X8, PASSTHROUGH, SIGMOID, TRANSPOSE_XY, LEAKY_RELU, DOWNSAMPLE_2X2, not "
            "FAULT" + AT,
        ),
        (
            ple_only(PleOperation.PASSTHROUGH, [source(SHAPE)], target(SHAPE)),
            "error[E964]: command 0 PLE_ONLY: the kernel must be one of ADDITION, "
            "ADDITION_RESCALE, AVGPOOL_3X3_1_1_UDMA, not PASSTHROUGH" + AT,
        ),
        (
            ple_only(PleOperation.ADDITION, [source(SHAPE)], target(SHAPE)),
            "error[E964]: command 0 PLE_ONLY: ADDITION must have 2 inputs, not 1" + AT,
        ),
        (
            replace(PLAIN, weights=replace(PLAIN.weights, dram_buffer_id=INPUT)),
            "error[E928]: buffer 1 must be one of constants, which are [0, 3, 4]",
        ),
    ],
)
def test_faults(command: Command, message: str) -> None:
    assert fault([command]) == message


def test_a_buffer_is_a_byte_too_small() -> None:
    assert fault([copied(source(SHAPE), target(SHAPE))], table([BYTES - 1], BYTES)) == (
        "error[E950]: command 0 CONVERT: input must lie in buffer 1 of 1023 bytes, and needs 1024"
        + AT
        + "\n  help the command stream is damaged or belongs to another container"
    )


def test_a_part_of_an_output_is_missing() -> None:
    part = target((8, 8, 8), supertensor_shape=(1, *SHAPE))
    data = source((8, 8, 8), supertensor_shape=(1, *SHAPE))
    assert fault([copied(data, part)]) == (
        "error[E967]: every byte of output buffer 2 must be written, 512 of 1024 are not"
    )


def test_an_output_is_larger_than_what_is_written_by_a_brick_group() -> None:
    assert fault([copied(source(SHAPE), target(SHAPE))], table([BYTES], 2 * BYTES)) == (
        "error[E967]: every byte of output buffer 2 must be written, 1024 of 2048 are not"
    )


def test_memory_that_no_machine_has() -> None:
    buffers = ONE_IN_ONE_OUT | {FURTHER: (BufferKind.INTERMEDIATE, (1 << 32) - 64)}
    assert fault([], buffers) == (
        "error[E968]: a program's buffers must have at most 1073741824 bytes to be executed here, "
        "not 4294969280"
    )


def test_intermediates_that_share_their_place() -> None:
    """Written through one buffer, read through another that lies at the same bytes."""
    first, second = FURTHER, FURTHER + 1
    buffers = ONE_IN_ONE_OUT | {
        first: (BufferKind.INTERMEDIATE, BYTES),
        second: (BufferKind.INTERMEDIATE, BYTES),
    }
    commands = [
        copied(source(SHAPE), target(SHAPE, dram_buffer_id=first)),
        copied(source(SHAPE), target(SHAPE, dram_buffer_id=second)),
        copied(source(SHAPE, dram_buffer_id=first), target(SHAPE)),
    ]
    made = program(commands, buffers)
    Simulator(made)
    apart = made.container.intermediates
    together = (apart[0], replace(apart[1], offset=64))
    container = replace(made.container, intermediates=together)
    with pytest.raises(MizzenError) as caught:
        Simulator(program_of(container, made.capabilities))
    assert caught.value.diagnostic.render() == (
        "error[E952]: command 2 CONVERT: input must read what was written to buffer 5, and reads "
        "960 bytes that buffer 6 overwrote since\n  at   command at word 90"
    )


def compressed(written: TensorRecord, read: TensorRecord) -> str:
    buffers = ONE_IN_ONE_OUT | {FURTHER: (BufferKind.INTERMEDIATE, 4224)}
    return fault([copied(source(SHAPE), written), copied(read, target(SHAPE))], buffers)


def test_what_is_compressed_is_read_as_it_was_written() -> None:
    deep = tensor(SHAPE, FURTHER, 0, format=Format.FCAF_DEEP)
    assert compressed(deep, replace(deep, format=Format.FCAF_WIDE)) == (
        "error[E953]: command 1 CONVERT: input must be read as it was compressed: it is FCAF_WIDE "
        "of 1x8x8x16, and buffer 5 holds FCAF_DEEP of 1x8x8x16\n"
        "  at   command at word 47"
    )
    assert compressed(replace(deep, format=Format.NHWCB), deep) == (
        "error[E953]: command 1 CONVERT: input must be read as it was compressed: it is FCAF_DEEP "
        "of 1x8x8x16, and buffer 5 holds uncompressed data\n"
        "  at   command at word 47"
    )


def test_what_was_left_in_sram_is_gone() -> None:
    kept = target(SHAPE, location=Location.SRAM)
    first = replace(PLAIN, output=kept)
    last = replace(PLAIN, input=kept, output=target(SHAPE, sram_offset_bytes=SRAM_INPUT))
    between = Convert(
        source(SHAPE, sram_offset_bytes=SRAM_OUTPUT + 127),
        tensor(SHAPE, FURTHER, SRAM_OUTPUT + 127),
    )
    buffers = ONE_IN_ONE_OUT | {FURTHER: (BufferKind.INTERMEDIATE, BYTES)}
    assert fault([first, between, last], buffers) == (
        "error[E958]: command 2 MCE_PLE: input must still be in SRAM, and the output of command 0 "
        "MCE_PLE was overwritten by the output of command 1 CONVERT at 28799..28927\n"
        "  at   command at word 139"
    )
    assert fault([first, replace(last, input=replace(kept, data_type=DataTypeCode.S8))]) == (
        "error[E958]: command 1 MCE_PLE: input must be as it was left in SRAM: S8 1x8x8x16, "
        "and the output of command 0 MCE_PLE is U8 1x8x8x16\n  at   command at word 96"
    )


@pytest.mark.parametrize(
    ("arrays", "batch", "message"),
    [
        ([], 1, "there must be 1 image or more and 1 inputs, not 1 and 0"),
        ([np.zeros((0, 1024), np.uint8)], 0, "there must be 1 image or more and 1 inputs, not 0"),
        (
            [np.zeros((2, 1024), np.int16)],
            2,
            "the array for buffer 1 must have 2 times 1024 to 1024 elements of 8 bits, not 2048 "
            "of 16",
        ),
        (
            [np.zeros((2, 1000), np.uint8)],
            2,
            "the array for buffer 1 must have 2 times 1024 to 1024 elements of 8 bits, not 2000 "
            "of 8",
        ),
    ],
)
def test_inputs_that_are_not_the_programs(
    arrays: list[np.ndarray[Any, Any]], batch: int, message: str
) -> None:
    simulator = Simulator(program([PLAIN], ONE_IN_ONE_OUT, encoded(KERNEL, PLAIN)))
    with pytest.raises(MizzenError, match="E966") as caught:
        simulator.run(arrays, batch)
    assert message in caught.value.diagnostic.message


def test_weights_are_found_where_the_metadata_says() -> None:
    made = program([PLAIN], ONE_IN_ONE_OUT, encoded(KERNEL, PLAIN))
    (place,) = made.weight_stripes(PLAIN)
    assert (place.offset, place.size) == (0, len(made.constant(WEIGHTS)))
