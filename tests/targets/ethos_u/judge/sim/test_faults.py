"""Programs that must not give an answer: every fault says what and where, in full."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError, Origin
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.program import HardwareId, Program

from .assembler import IFM, IFM2, U55_128, Settings, activation, feature_map, result, window

SHAPE = (2, 2, 4)
AVERAGE, REDUCE_SUM = 1, 2
SHL = 9


def pooling_settings(**changes: Any) -> Settings:
    settings = (
        feature_map("IFM", SHAPE, np.int8, IFM)
        | result(SHAPE, np.int8)
        | activation(-128, 127)
        | window(1, 1)
        | {"SET_OFM_SCALE": {"scale": 1, "shift": 0}}
    )
    return {name: value for name, value in (settings | changes).items() if value is not None}


def pooling_program(**changes: Any) -> Program:
    commands = U55_128.commands(pooling_settings(**changes), "OP_POOL", pooling_mode=AVERAGE)
    return U55_128.program(commands, [(SHAPE, np.int8)], (SHAPE, np.int8))


def fault(made: Program) -> str:
    with pytest.raises(MizzenError) as caught:
        Simulator(made)
    return str(caught.value)


HELP = "\n  help the command stream is damaged or was made for another NPU; compile it again"


def test_the_program_that_the_faults_vary_is_the_identity() -> None:
    x = np.arange(-8, 8, dtype=np.int8).reshape(1, *SHAPE)
    (output,) = Simulator(pooling_program()).run([x], 1).outputs
    assert np.array_equal(output, x)


@pytest.mark.parametrize("name", sorted(pooling_settings()))
def test_every_register_that_a_pooling_needs_must_be_set(name: str) -> None:
    message = fault(pooling_program(**{name: None}))
    assert message.startswith(
        f"error[E611]: OP_POOL: the operation needs {name}, which no command has set\n"
        "  at   command at word "
    )
    assert message.endswith(HELP)


def test_a_fault_names_the_models_operator() -> None:
    made = pooling_program(SET_IFM_REGION={"region": 5})
    word = len(made.words) - 2
    origin = Origin("net.tflite", 7, "AVERAGE_POOL_2D", "pool")
    assert fault(replace(made, origins={4 * word: origin})) == (
        "error[E631]: OP_POOL: region 5 must exist; the program has [0, 1]\n"
        f'  at   net.tflite, command at word {word}, operator 7 AVERAGE_POOL_2D -> "pool"'
    )


def test_a_fault_of_a_transfer_names_the_operator_that_it_serves() -> None:
    """Only commands of operations have an origin: a transfer brings what the next one needs."""
    settings: Settings = {
        "SET_DMA0_SRC_REGION": {"region": 1},
        "SET_DMA0_DST_REGION": {"region": 3, "region_mode": 1},
        "SET_DMA0_SRC": {"address": 0},
        "SET_DMA0_DST": {"address": 24 * 1024},
        "SET_DMA0_LEN": {"length": 256},
    }
    transfer = U55_128.commands(settings, "OP_DMA_START")
    pooling = U55_128.commands(pooling_settings(), "OP_POOL", pooling_mode=AVERAGE)
    made = U55_128.program([*transfer, *pooling], [(SHAPE, np.int8)], (SHAPE, np.int8))
    origin = Origin("net.tflite", 7, "LOGISTIC", "score")
    said = fault(replace(made, origins={4 * (len(made.words) - 2): origin}))
    assert "OP_DMA_START: bytes 24576..24832 must lie in region -1, which has 24576" in said
    assert 'operator 7 LOGISTIC -> "score"' in said


def test_a_map_outside_its_region() -> None:
    message = fault(pooling_program(SET_IFM_BASE0={"address": 0x3000 - 15}))
    assert "bytes 12273..12289 must lie in region 1, which has 12288 bytes" in message


def test_an_output_among_constants() -> None:
    message = fault(pooling_program(SET_OFM_REGION={"region": 0}, SET_OFM_BASE0={"address": 0}))
    assert "bytes 0..16 must lie in region 0, which has 0 bytes" in message


def test_an_interface_among_constants() -> None:
    made = pooling_program()
    (output,) = made.outputs
    changed = replace(
        made,
        outputs=(replace(output, region=0),),
        constants={0: np.zeros(64, np.uint8)},
        region_bytes=made.region_bytes | {0: 64},
    )
    assert fault(changed) == (
        f"error[E631]: tensor {output.name!r} must lie in memory that the program writes, not "
        "among the constants of region 0\n  help the artifact is damaged; compile it again"
    )


def test_a_stream_without_an_end() -> None:
    made = pooling_program()
    stop = U55_128["OP_STOP"].words
    assert fault(replace(made, words=made.words[:-stop])) == (
        "error[E612]: a command stream must end with OP_STOP, and this one does not\n"
        "  help the command stream is damaged; compile it again"
    )


def test_an_unknown_command() -> None:
    made = pooling_program()
    assert fault(replace(made, words=np.append(np.uint32(0x3FF), made.words))).startswith(
        "error[E502]: 0x000003ff must start a command of Ethos-U55"
    )


def test_accumulators_of_floats() -> None:
    message = fault(pooling_program(SET_ACC_FORMAT={"acc_format": 2}))
    assert "E614" in message
    assert "accumulators must be I32 or I40 here, not F16" in message


def test_elements_of_64_bits() -> None:
    precision = {**pooling_settings()["SET_OFM_PRECISION"], "activation_precision": 3}
    message = fault(pooling_program(SET_OFM_PRECISION=precision))
    assert "SET_OFM_PRECISION: elements must have at most 32 bits, not 64" in message


def test_elements_of_64_bits_have_no_hazards_either() -> None:
    """They once ended the look for hazards where a table was to be found for them."""
    precision = {**pooling_settings()["SET_OFM_PRECISION"], "activation_precision": 3}
    table = {**pooling_settings()["SET_ACTIVATION"], "activation_function": 16}
    program = pooling_program(SET_OFM_PRECISION=precision, SET_ACTIVATION=table)
    with pytest.raises(MizzenError, match=r"E613.*elements must have at most 32 bits, not 64"):
        find_hazards(program)


def test_a_sum_over_channels_of_several() -> None:
    commands = U55_128.commands(
        pooling_settings(SET_IFM_DEPTH_M1={"depth": 4}), "OP_POOL", pooling_mode=REDUCE_SUM
    )
    message = fault(U55_128.program(commands, [(SHAPE, np.int8)], (SHAPE, np.int8)))
    assert "error[E613]: OP_POOL: a sum over channels must have depth 1, not 4" in message


def test_a_huge_map() -> None:
    changes = {
        "SET_OFM_HEIGHT_M1": {"height": 65536},
        "SET_OFM_WIDTH_M1": {"width": 65536},
        "SET_OFM_HEIGHT0_M1": {"height": 65536},
        "SET_OFM_WIDTH0_M1": {"width": 65536},
        "SET_OFM_STRIDE_Y": {"stride": 65536 * SHAPE[2]},
        "SET_OFM_STRIDE_X": {"stride": SHAPE[2]},
    }
    message = fault(pooling_program(**changes))
    assert "a feature map must have at most 1073741824 bytes, not 17179869184" in message


def test_no_hardware_configuration() -> None:
    assert fault(replace(pooling_program(), hardware=None)).startswith(
        "error[E604]: the driver payload must say which hardware it is for, and has no CONFIG word"
    )


def test_hardware_that_does_not_exist() -> None:
    odd = HardwareId(config_word=0x0000_000F, id_word=U55_128.hardware.id_word)
    assert "CONFIG must be the word of an accelerator, not 0x0000000f" in fault(
        replace(pooling_program(), hardware=odd)
    )


def test_a_table_that_nothing_loaded() -> None:
    message = fault(pooling_program(**activation(-128, 127, function=16)))
    assert (
        "error[E633]: OP_POOL: the lookup table must come from constants, by DMA or directly; "
        "bytes 22528..22784 of the NPU's own memory do not" in message
    )


def test_an_accumulator_beyond_its_width() -> None:
    shape = (1, 1, 4)
    settings = (
        feature_map("IFM", shape, np.int32, IFM)
        | result((1, 1, 1), np.int32)
        | activation(-32768, 32767)
        | window(1, 1)
        | {"SET_OFM_SCALE": {"scale": 1, "shift": 0}, "SET_IFM_DEPTH_M1": {"depth": 4}}
    )
    commands = U55_128.commands(settings, "OP_POOL", pooling_mode=REDUCE_SUM)
    simulator = Simulator(U55_128.program(commands, [(shape, np.int32)], ((1, 1, 1), np.int32)))
    fits = np.full((1, *shape), (1 << 29) - 1, np.int32)
    assert simulator.run([fits], 1).outputs[0].item() == (1 << 31) - 4
    with pytest.raises(MizzenError) as caught:
        simulator.run([fits + 1], 1)
    assert str(caught.value).startswith(
        "error[E641]: OP_POOL: an accumulator must fit 32 bits, and reaches "
        "2147483648..2147483648\n  at   command at word "
    )


def test_a_tensor_outside_memory() -> None:
    made = pooling_program()
    moved = replace(made.inputs[0], offset=0x3000)
    assert fault(replace(made, inputs=(moved,))).startswith(
        "error[E631]: tensor 'input 0' must lie in region 1, which has 12288 bytes, not at "
        "12288..12304"
    )


def test_inferred_paths_are_said_once() -> None:
    settings = pooling_settings(
        **result(SHAPE, np.int8, round_mode=1)  # TRUNCATE
    )
    commands = U55_128.commands(settings, "OP_POOL", pooling_mode=AVERAGE)
    made = U55_128.program([*commands, commands[-1]], [(SHAPE, np.int8)], (SHAPE, np.int8))
    x = np.zeros((1, *SHAPE), np.int8)
    (note,) = Simulator(made).run([x], 1).diagnostics
    assert note.render() == (
        "note[N661]: OP_POOL: the meaning of this is inferred: TRUNCATE rounding, taken as toward "
        f"zero\n  at   command at word {len(made.words) - 3}\n"
        "  help compare with hardware before you rely on the result"
    )


def test_a_transfer_through_the_custom_dma() -> None:
    message = fault(pooling_program(SET_IFM_REGION={"region": 1, "custom_dma_cs": 1}))
    assert "SET_IFM_REGION: the custom DMA's chip select is not modelled" in message


def test_commands_know_their_fields() -> None:
    with pytest.raises(MizzenError, match=r"^error\[E511\]"):
        U55_128["SET_IFM_REGION"](region=8, custom_dma_cs=0)


def test_a_left_shift_beyond_32_bits() -> None:
    shape = (1, 1, 2)
    settings = (
        feature_map("IFM", shape, np.int32, IFM)
        | feature_map("IFM2", shape, np.int32, IFM2)
        | result(shape, np.int32)
        | activation(-32768, 32767)
        | {"SET_IFM_UPSCALE": {"mode": 0}, "SET_IFM2_BROADCAST": {}}
    )
    commands = U55_128.commands(settings, "OP_ELEMENTWISE", elementwise_mode=SHL)
    simulator = Simulator(U55_128.program(commands, [(shape, np.int32)] * 2, (shape, np.int32)))
    values = np.array([3, -5], np.int32).reshape(1, *shape)
    (output,) = simulator.run([values, np.full_like(values, 28)], 1).outputs
    assert output.ravel().tolist() == [3 << 28, -5 << 28]
    with pytest.raises(MizzenError, match="a result must fit 32 bits, and reaches -2684354560"):
        simulator.run([values, np.full_like(values, 29)], 1)
    with pytest.raises(MizzenError, match=r"^error\[E642\]: OP_ELEMENTWISE: a shift must be in"):
        simulator.run([values, np.full_like(values, 32)], 1)


def test_a_program_that_takes_nothing_runs_for_the_batch_that_is_asked() -> None:
    made = replace(pooling_program(), inputs=())
    (output,) = Simulator(made).run([], 3).outputs
    assert len(output) == 3
