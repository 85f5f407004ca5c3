"""Products of maps as convolutions: the same numbers, without hazards, in fewer cycles."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError, Origin
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.matrix import with_written_products
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    Convolution,
    Copy,
    Elementwise,
    Kernel,
    Map,
    Operation,
    Pooling,
    Role,
    Scale,
    Sequence,
    Tensor,
)
from mizzen.targets.ethos_u.generator.schedule import plain
from mizzen.targets.ethos_u.generator.shared_buffer import CORES
from mizzen.targets.ethos_u.generator.weights import byte_of, gapped_stream, orders_of
from mizzen.targets.ethos_u.judge.codec.decoding import decode
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.judge.timing import estimate
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode, PoolingMode, RoundMode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

from .stream_weights import weights_of

Array = np.ndarray[Any, np.dtype[Any]]
SCALE = Scale(1518500250, 38)
INT8 = np.dtype(np.int8)


def product(
    shape: tuple[int, int, int, int],
    zero_points: tuple[int, int, int] = (3, -7, 11),
    dtype: np.dtype[Any] = INT8,
) -> Sequence:
    """Return heads x rows x columns x depth as rules make it: a product and a sum a column."""
    heads, rows, columns, depth = shape
    tensors = [
        Tensor("left", (heads, rows, depth), dtype, Role.INPUT),
        Tensor("right", (heads, columns, depth), dtype, Role.INPUT),
        Tensor("result", (heads, rows, columns), dtype, Role.OUTPUT),
    ]
    operations: list[Operation] = []
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for column in range(columns):
        scratch = len(tensors)
        tensors.append(Tensor("products", (heads, rows, depth), np.dtype(np.int32)))
        products = Map(Box(scratch, (heads, rows, depth)), np.dtype(np.int32))
        operations += [
            Elementwise(
                Origin(),
                ElementwiseMode.MUL,
                Map(Box(0, (heads, rows, depth)), dtype, zero_points[0]),
                Map(Box(1, (heads, 1, depth), (0, column, 0)), dtype, zero_points[1]),
                products,
                Activation(-32768, 32767),
                scale=Scale(1, 0),
            ),
            Pooling(
                Origin(),
                PoolingMode.REDUCE_SUM,
                products,
                Map(Box(2, (heads, rows, 1), (0, 0, column)), dtype, zero_points[2]),
                Kernel(),
                SCALE,
                Activation(low, high),
                rounding=RoundMode.NATURAL,
            ),
        ]
    return Sequence(tuple(tensors), tuple(operations), (0, 1), (2,))


def made(sequence: Sequence, accelerator: str) -> Program:
    return emit(plain(sequence, resolve(accelerator)), ACCELERATORS[accelerator])


def ran(program: Program, seed: int = 0) -> Array:
    """Return the output for two inputs of the whole range, each with weights of its own."""
    generator = np.random.default_rng(seed)
    inputs = [
        np.frombuffer(generator.bytes(2 * row.size_bytes), row.dtype).reshape(2, *row.shape)
        for row in program.inputs
    ]
    return Simulator(program).run(inputs, 2).outputs[0]


@pytest.mark.parametrize("accelerator", CORES)
@pytest.mark.parametrize("shape", [(2, 9, 12, 20), (1, 5, 33, 40), (1, 4, 130, 7)], ids=str)
def test_a_product_is_the_same_at_once(shape: tuple[int, int, int, int], accelerator: str) -> None:
    sequence = product(shape)
    written = with_written_products(sequence, ACCELERATORS[accelerator])
    kinds = {type(operation) for operation in written.operations}
    assert kinds == {Copy, Pooling, Convolution}
    program = made(written, accelerator)
    assert find_hazards(program).findings == ()
    result = ran(program)
    assert len(np.unique(result)) > 50
    assert np.array_equal(result, ran(made(sequence, accelerator)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("corner", ["low", "high"])
def test_zero_points_at_the_ends_of_the_range(dtype: type[np.int8 | np.uint8], corner: str) -> None:
    type_ = np.dtype(dtype)
    zero = int(np.iinfo(type_).min if corner == "low" else np.iinfo(type_).max - 1)
    sequence = product((1, 4, 9, 16), (zero, zero, zero), type_)
    written = with_written_products(sequence, ACCELERATORS["ethos-u55-128"])
    assert written is not sequence
    assert np.array_equal(ran(made(written, "ethos-u55-128")), ran(made(sequence, "ethos-u55-128")))


def test_products_that_no_stream_can_hold_stay() -> None:
    accelerator = ACCELERATORS["ethos-u55-128"]
    for sequence in (
        product((1, 4, 8, 16), (0, 127, 0)),  # would need a weight of -128
        product((1, 3, 16, 16)),
        product((1, 16, 3, 16)),
        product((1, 4, 4, 16)),
        product((1, 4, 8, 16), dtype=np.dtype(np.int16)),
    ):
        assert with_written_products(sequence, accelerator) is sequence


def test_products_stay_where_the_array_multiplies_maps() -> None:
    sequence = product((2, 9, 12, 20))
    assert with_written_products(sequence, ACCELERATORS["ethos-u85-256"]) is sequence
    result = ran(made(sequence, "ethos-u85-256"))
    assert np.array_equal(result, ran(made(sequence, "ethos-u55-128")))


def test_products_that_somebody_else_reads_stay() -> None:
    sequence = product((1, 4, 8, 16))
    read = replace(sequence, outputs=(2, 3))
    assert with_written_products(read, ACCELERATORS["ethos-u55-128"]) is read


@pytest.mark.parametrize(("accelerator", "most"), [("ethos-u55-128", 0.15), ("ethos-u65-512", 0.1)])
def test_it_takes_fewer_cycles(accelerator: str, most: float) -> None:
    sequence = product((4, 32, 32, 32))
    configuration = resolve(accelerator)
    written = with_written_products(sequence, ACCELERATORS[accelerator])
    before, after = (estimate(made(row, accelerator), configuration) for row in (sequence, written))
    assert sum(row.cycles for row in after) < most * sum(row.cycles for row in before)
    assert sum(row.vela_cycles for row in after) < most * sum(row.vela_cycles for row in before)


def test_weights_that_nobody_wrote_are_refused() -> None:
    sequence = with_written_products(product((1, 4, 8, 16)), ACCELERATORS["ethos-u55-128"])
    convolution = sequence.operations[-1]
    assert isinstance(convolution, Convolution)
    program = made(replace(sequence, operations=(convolution,)), "ethos-u55-128")
    with pytest.raises(MizzenError, match=r"E633.*the weights must come from constants"):
        Simulator(program)


def test_the_simulator_says_that_it_infers() -> None:
    sequence = with_written_products(product((1, 4, 8, 16)), ACCELERATORS["ethos-u55-128"])
    notes = Simulator(made(sequence, "ethos-u55-128")).notes
    assert [note.code for note in notes] == ["N686"]


@pytest.mark.parametrize("accelerator", CORES)
@pytest.mark.parametrize("constant", [-127, 0, 128])
@pytest.mark.parametrize("shape", [(5, 9), (32, 32), (130, 16), (256, 160)], ids=str)
def test_gaps_are_where_weights_are(
    shape: tuple[int, int], constant: int, accelerator: str
) -> None:
    """Streams of more than 32,767 weights have several slices."""
    written_and_read(shape, constant, accelerator)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512"])
def test_gaps_are_bytes_under_any_constant(accelerator: str) -> None:
    """For some, no slice of one coding ends where another header's end is that of a byte."""
    for constant in range(-127, 129):
        written_and_read((9, 8), constant, accelerator)


def written_and_read(shape: tuple[int, int], constant: int, accelerator: str) -> None:
    channels, depth = shape
    block = min(128, 8 * math.ceil(channels / 8))
    row = ACCELERATORS[accelerator]
    orders = orders_of((channels, 2, 1, depth), (1, 1), block, 8, False, False, row)
    wanted = np.random.default_rng(5).integers(-127, 129, (channels, depth))
    streams: list[bytes] = []
    for core, order in enumerate(orders):
        stream = gapped_stream(order, constant)
        data = np.frombuffer(stream.data, np.uint8).copy()
        assert not data[stream.offsets].any()
        data[stream.offsets] = byte_of(wanted[core :: len(orders)])
        streams.append(data.tobytes())
    weights = weights_of(decode(streams), orders)
    assert np.array_equal(weights[:, 1, 0], wanted)
    assert np.unique(weights[:, 0]).tolist() == [constant]
