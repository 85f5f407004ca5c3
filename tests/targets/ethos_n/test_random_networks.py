"""Random networks: what is compiled of them fits the SRAM, keeps what is needed, and is right.

They have any topology: maps that several read, sums, concatenations, parts, several outputs. They
are compiled with little SRAM and any of the strategies, so that every way to cut maps comes up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import Location
from mizzen.targets.ethos_n.config import (
    BLOCK_CONFIGS,
    CHOOSABLE_STRATEGIES,
    VARIANTS,
    Capabilities,
    CompilationOptions,
    VariantConfiguration,
)
from mizzen.targets.ethos_n.emit import emit
from mizzen.targets.ethos_n.lower import lower
from mizzen.targets.ethos_n.lower.work_graph import Graph, Node, Relabel
from mizzen.targets.ethos_n.network import (
    Addition,
    Concatenation,
    Convolution,
    DepthwiseConvolution,
    LeakyRelu,
    Network,
    Operand,
    Operation,
    Pooling,
    PoolingType,
    Relu,
    Requantize,
    Reshape,
    Resize,
    ResizeAlgorithm,
    Sigmoid,
    Split,
)
from mizzen.targets.ethos_n.program import BufferInfo, BufferKind
from mizzen.targets.ethos_n.reference import evaluate
from mizzen.targets.ethos_n.schedule import schedule
from mizzen.targets.ethos_n.schedule.attempt import Attempt, ConvertPass, McePass, Pass, brick_bytes
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    Padding,
    QuantizationInfo,
    Shape,
    Stride,
    TensorInfo,
)

from .executing import drawn_inputs, executed

KIB = 1024
QUANTIZATIONS = [QuantizationInfo(zero, (scale,)) for zero in (0, 128) for scale in (0.02, 0.05)]
Place = tuple[int, int]
"""Begin and end, bytes within a bank or of memory."""


def quantizations(data: st.DataObject) -> QuantizationInfo:
    return data.draw(st.sampled_from(QUANTIZATIONS))


def weighted(network: Network, x: Operand, data: st.DataObject) -> Operand:
    """Add a convolution, depthwise or not, whose results are spread over their range."""
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    channels, side = x.info.channels, data.draw(st.sampled_from([1, 3]))
    stride = data.draw(st.sampled_from([1, 2])) if min(x.info.shape[1:3]) > 4 else 1
    outputs, deep = data.draw(st.sampled_from([8, 16, 40])), data.draw(st.booleans())
    shape: Shape = (side, side, channels, 1) if deep else (side, side, channels, outputs)
    form = DataFormat.HWIM if deep else DataFormat.HWIO
    scale = 1 / (64 * side * (1 if deep else channels) ** 0.5)
    weights = network.add_constant(
        TensorInfo(shape, DataType.U8, form, QuantizationInfo(128, (scale,))),
        random.integers(60, 200, shape, np.uint8),
    )
    made = channels if deep else outputs
    bias = network.add_constant(
        TensorInfo(
            (1, 1, 1, made),
            DataType.S32,
            quantization=QuantizationInfo(0, (x.info.quantization.scale * scale,)),
        ),
        random.integers(-500, 500, (1, 1, 1, made), np.int32),
    )
    padding = same(x.info.shape, side, stride)
    kind = DepthwiseConvolution if deep else Convolution
    operation = kind(padding, Stride(stride, stride), quantizations(data))
    return network.add(operation, x, bias, weights).operand


def same(shape: Shape, side: int, stride: int) -> Padding:
    """Return the padding with which planes are divided by the stride, rounded up."""
    high, wide = (
        max((-(-extent // stride) - 1) * stride + side - extent, 0) for extent in shape[1:3]
    )
    return Padding(high // 2, high - high // 2, wide // 2, wide - wide // 2)


def of_one(x: Operand, data: st.DataObject) -> Operation | None:
    """Return an operation of a map, if it can have one of the kind that was drawn."""
    _, height, width, channels = x.info.shape
    match data.draw(st.integers(0, 6)):
        case 0:
            low = data.draw(st.integers(0, 120))
            return Relu(low, data.draw(st.integers(low + 60, 255)))
        case 1:
            return LeakyRelu(0.25, quantizations(data))
        case 2:
            return Sigmoid()
        case 3:
            return Requantize(quantizations(data))
        case 4 if height % 2 == width % 2 == 0 and min(height, width) > 2:
            return Pooling((2, 2), Stride(2, 2), Padding(), PoolingType.MAX)
        case 5 if height * width <= 400:
            return Resize(
                ResizeAlgorithm.NEAREST_NEIGHBOUR, 2 * height, 2 * width, x.info.quantization
            )
        case 6 if height % 2 == 0:
            return Reshape((1, height // 2, width * 2, channels))
        case _:
            return None


def grown(network: Network, values: list[Operand], data: st.DataObject) -> list[Operand]:
    """Add an operation of what there is."""
    x = data.draw(st.sampled_from(values))
    alike = [row for row in values if row.info.shape == x.info.shape]
    match data.draw(st.integers(0, 4)):
        case 0:
            other = data.draw(st.sampled_from(alike))
            return [network.add(Addition(quantizations(data)), x, other).operand]
        case 1:
            other = data.draw(st.sampled_from(alike))
            axis = data.draw(st.integers(1, 3))
            return [network.add(Concatenation(axis, x.info.quantization), x, other).operand]
        case 2 if x.info.channels > 1:
            first = data.draw(st.integers(1, x.info.channels - 1))
            return list(network.add(Split(3, (first, x.info.channels - first)), x).outputs)
        case 3:
            operation = of_one(x, data)
            return [] if operation is None else [network.add(operation, x).operand]
        case _:
            return [weighted(network, x, data)]


def drawn_network(data: st.DataObject) -> Network:
    network = Network()
    extents = st.integers(2, 24)
    shape: Shape = (1, data.draw(extents), data.draw(extents), data.draw(st.sampled_from([3, 16])))
    values = [network.add_input(TensorInfo(shape, quantization=quantizations(data)))]
    values.append(weighted(network, values[0], data))
    for _ in range(data.draw(st.integers(1, 6))):
        values += grown(network, values, data)
    users = network.users()
    for operand in values:
        if not users[operand]:
            network.add_output(operand)
    return network


def drawn_configuration(data: st.DataObject) -> VariantConfiguration:
    variant = data.draw(st.sampled_from(list(VARIANTS.values())))
    least = 32 * variant.engines * variant.emcs
    strategies = data.draw(st.sets(st.sampled_from(CHOOSABLE_STRATEGIES), min_size=3))
    return VariantConfiguration(
        variant,
        data.draw(st.sampled_from([0, least * KIB])),
        CompilationOptions(
            strategies=frozenset(strategies),
            block_configs=frozenset(data.draw(st.sets(st.sampled_from(BLOCK_CONFIGS), min_size=3))),
            intermediate_compression=data.draw(st.booleans()),
            winograd=data.draw(st.booleans()),
        ),
    )


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_compiled_networks_give_what_the_reference_gives(data: st.DataObject) -> None:
    network, configuration = drawn_network(data), drawn_configuration(data)
    inputs = drawn_inputs(network)
    try:
        _, found = executed(network, configuration, inputs)
    except MizzenError as error:
        # What is not supported, has no room with so few strategies, or keeps no number is refused.
        assume(error.diagnostic.code not in ("E970", "E972", "E975"))
        raise
    for array, expected in zip(found, evaluate(network, inputs), strict=True):
        np.testing.assert_array_equal(array, expected)


@dataclass(frozen=True)
class Used:
    """What a pass uses of each bank: tiles of its own, and where maps begin that were there."""

    own: list[Place]
    read: list[int]


def used(made: Pass, attempt: Attempt) -> Used:
    """Return the places of a pass's tiles, apart from those that it finds filled."""
    banks, kernel = attempt.capabilities.srams, attempt.capabilities.max_ple_bytes
    sources = made.nodes[0].inputs
    own = [output_place(made, attempt.capabilities)]
    read = [attempt.of(row).sram_offset_bytes for row in sources if attempt.in_sram(row)]
    if isinstance(made, ConvertPass):
        return Used(own, read)
    tiles = [made.plan.input, made.plan.weights] if isinstance(made, McePass) else made.plan.inputs
    at = made.plan.ple_offset_bytes
    own.append((at, at + kernel))
    for tile in tiles:
        if tile.offset_bytes not in read:
            own.append((tile.offset_bytes, tile.offset_bytes + tile.bytes // banks))
    assert len(own) + len(read) == len(tiles) + 2
    return Used(own, read)


def readers_of(node: Node, attempt: Attempt) -> Iterator[Pass]:
    """Return the passes that read a map, by way of other readings of its bytes too."""
    for user in node.users:
        made = attempt.of(user).made_by
        if made is not None:
            yield made
        elif isinstance(user.work, Relabel):
            yield from readers_of(user, attempt)


def output_place(made: Pass, capabilities: Capabilities) -> Place:
    """Return where a pass leaves its output in each bank."""
    if isinstance(made, ConvertPass):
        size = brick_bytes(made.stripe)
        return made.offset_bytes, made.offset_bytes + size // capabilities.srams
    tile = made.plan.output
    return tile.offset_bytes, tile.offset_bytes + tile.bytes // capabilities.srams


def span(info: BufferInfo) -> Place:
    return info.offset, info.offset + info.size


def apart(one: Place, other: Place) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


def divided(data: st.DataObject) -> tuple[Graph, Attempt, Capabilities]:
    """Divide a random network into passes."""
    configuration = drawn_configuration(data)
    capabilities = configuration.capabilities
    graph = lower(drawn_network(data), capabilities)
    try:
        return graph, schedule(graph, capabilities, configuration.options), capabilities
    except MizzenError as error:
        assume(error.diagnostic.code != "E972")
        raise


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_tiles_lie_apart_and_off_what_stays(data: st.DataObject) -> None:
    _, attempt, capabilities = divided(data)
    bank = capabilities.sram_bytes // capabilities.srams
    staying: list[tuple[int, int, Place]] = []
    places = {made: index for index, made in enumerate(attempt.passes)}
    for made, index in places.items():
        if attempt.of(made.nodes[-1]).location is Location.SRAM:
            last = max((places[row] for row in readers_of(made.nodes[-1], attempt)), default=index)
            staying.append((index, last, output_place(made, capabilities)))
    for made, index in places.items():
        tiles = used(made, attempt)
        rows = sorted(tiles.own)
        assert all(begin >= 0 and end <= bank for begin, end in rows)
        assert all(apart(one, other) for at, one in enumerate(rows) for other in rows[:at])
        kept = [place for begin, end, place in staying if begin < index <= end]
        assert all(apart(tile, place) for tile in tiles.own for place in kept)
        assert set(tiles.read) <= {begin for begin, _ in kept}


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_maps_in_dram_lie_apart_while_they_are_needed(data: st.DataObject) -> None:
    graph, attempt, capabilities = divided(data)
    try:
        emission = emit(graph, attempt, capabilities)
    except MizzenError as error:
        assume(error.diagnostic.code != "E973")
        raise
    container = emission.buffers.finish(b"")
    rows = [(emission.buffers.entry(info.id), info) for info in container.intermediates]
    assert all(entry.kind is BufferKind.INTERMEDIATE for entry, _ in rows)
    for at, (one, place) in enumerate(rows):
        for other, behind in rows[:at]:
            together = (
                one.first_command <= other.last_command and other.first_command <= one.last_command
            )
            ends = (
                (place.offset, place.offset + place.size),
                (behind.offset, behind.offset + behind.size),
            )
            assert not together or apart(*ends)
    # What a pass reads was written by a pass before, or is what the inference takes.
    written = {info.id for info in container.inputs} | {info.id for info in container.constants_dma}
    for made in attempt.passes:
        for source in made.nodes[0].inputs:
            if attempt.in_dram(source):
                assert emission.ids[source] in written
        written.add(emission.ids[made.nodes[-1]])
