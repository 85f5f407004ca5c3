"""Small networks with random integers, and mappings of them by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.mesh.machine import Machine
from mizzen.mesh.mapping import Mapping, Message, Tile
from mizzen.mesh.mapping.memory import inputs_of
from mizzen.mesh.network.boxes import Box, box_of, elements_of, intersection
from mizzen.mesh.network.network import Layer, LayerKind, Network, Tensor, Window
from mizzen.ops import Builder

Shape = tuple[int, int, int, int]
CHANNEL_BYTES = 9
"""Bias, multiplier and shift of an output channel."""


class NetworkMaker:
    """Adds layers of int8 tensors one behind the other."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.tensors = [Tensor("x", shape, 1)]
        self.layers: list[Layer] = []

    def network(self, outputs: Iterable[int] | None = None) -> Network:
        last = (len(self.tensors) - 1,) if outputs is None else tuple(outputs)
        return Network("hand", tuple(self.tensors), tuple(self.layers), (0,), last)

    def convolution(
        self,
        source: int,
        channels: int,
        kernel: int = 3,
        stride: int = 1,
        depthwise: bool = False,
        skip: int | None = None,
    ) -> int:
        """Add a convolution of padding SAME, with a tensor added to its result; return its own."""
        shape = self.tensors[source].shape
        depth = shape[3]
        graph = Graph("chain")
        builder = Builder(graph)
        x = graph.add_input(TensorType(shape, DType.INT8))
        size = (kernel, kernel, depth, 1) if depthwise else (channels, kernel, kernel, depth)
        weights = self.random.integers(-127, 128, size)
        bias = self.random.integers(-5000, 5000, channels)
        pad, places = _same(shape, kernel, stride)
        summed = builder(
            "DEPTHWISE_CONV2D" if depthwise else "CONV2D",
            x,
            graph.constant(weights, DType.INT8),
            graph.constant(bias, DType.INT32),
            builder.constant([self.random.integers(-128, 128)], DType.INT8),
            builder.constant([0], DType.INT8),
            pad=pad,
            stride=(stride, stride),
            dilation=(1, 1),
        )
        result = self._rescaled(builder, summed, channels)
        inputs = [source]
        if skip is not None:
            other = graph.add_input(TensorType(result.shape, DType.INT8))
            inputs.append(skip)
            result = self._added(builder, result, other)
        graph.set_outputs([result])
        kind = LayerKind.DEPTHWISE if depthwise else LayerKind.CONVOLUTION
        window = Window((kernel, kernel), (stride, stride), (1, 1), (pad[0], pad[2]))
        return self._add(
            kind,
            inputs,
            (1, *places, channels),
            graph,
            window=window,
            input_channels=1 if depthwise else depth,
            channel_bytes=CHANNEL_BYTES,
        )

    def sum(self, one: int, other: int) -> int:
        """Add a sum of two tensors of one shape."""
        graph = Graph("chain")
        shape = self.tensors[one].shape
        values = [graph.add_input(TensorType(shape, DType.INT8)) for _ in range(2)]
        graph.set_outputs([self._added(Builder(graph), *values)])
        return self._add(LayerKind.POINTWISE, [one, other], shape, graph)

    def pooling(self, source: int, kernel: int) -> int:
        """Add an average over windows side by side."""
        graph = Graph("chain")
        shape = self.tensors[source].shape
        builder = Builder(graph)
        x = graph.add_input(TensorType(shape, DType.INT8))
        zero = builder.constant([0], DType.INT8)
        sides = (kernel, kernel)
        pooled = builder(
            "AVG_POOL2D",
            *(x, zero, zero),
            kernel=sides,
            stride=sides,
            pad=(0, 0, 0, 0),
            acc_type=DType.INT32,
        )
        graph.set_outputs([pooled])
        return self._add(
            LayerKind.POOLING, [source], pooled.shape, graph, window=Window(sides, sides)
        )

    def concatenation(self, *sources: int) -> int:
        """Lay tensors behind each other by their channels."""
        graph = Graph("chain")
        shapes = [self.tensors[source].shape for source in sources]
        values = [graph.add_input(TensorType(shape, DType.INT8)) for shape in shapes]
        result = Builder(graph)("CONCAT", *values, axis=3)
        graph.set_outputs([result])
        firsts = np.cumsum([0, *(shape[3] for shape in shapes[:-1])]).tolist()
        offsets = tuple((0, 0, 0, first) for first in firsts)
        return self._add(LayerKind.MOVEMENT, list(sources), result.shape, graph, offsets=offsets)

    def greatest(self, source: int) -> int:
        """Add the greatest along the channels."""
        graph = Graph("chain")
        x = graph.add_input(TensorType(self.tensors[source].shape, DType.INT8))
        result = Builder(graph)("REDUCE_MAX", x, axis=3)
        graph.set_outputs([result])
        return self._add(LayerKind.REDUCTION, [source], result.shape, graph, reduced_axes=(3,))

    def flattening(self, source: int) -> int:
        """Add a reshape of everything into channels."""
        graph = Graph("chain")
        shape = self.tensors[source].shape
        x = graph.add_input(TensorType(shape, DType.INT8))
        whole = (1, 1, 1, int(np.prod(shape)))
        result = Builder(graph)("RESHAPE", x, graph.constant(whole, DType.SHAPE))
        graph.set_outputs([result])
        return self._add(LayerKind.GENERAL, [source], whole, graph)

    def _rescaled(self, builder: Builder, sums: Value, channels: int) -> Value:
        multipliers = self.random.integers(1 << 30, (1 << 31) - 1, channels)
        shifts = self.random.integers(38, 41, channels)
        return builder(
            "RESCALE",
            sums,
            builder.graph.constant(multipliers, DType.INT32),
            builder.graph.constant(shifts, DType.INT8),
            builder.constant([0], DType.INT32),
            builder.constant([-3], DType.INT8),
            scale32=True,
            rounding_mode=RoundingMode.DOUBLE_ROUND,
            per_channel=True,
            input_unsigned=False,
            output_unsigned=False,
        )

    def _added(self, builder: Builder, one: Value, other: Value) -> Value:
        wide = [
            self._scaled(builder, value, DType.INT8, DType.INT32, 30 - places)
            for places, value in enumerate((one, other))
        ]
        return self._scaled(builder, builder("ADD", *wide), DType.INT32, DType.INT8, 32)

    def _scaled(
        self, builder: Builder, value: Value, source: DType, target: DType, shift: int
    ) -> Value:
        return builder(
            "RESCALE",
            value,
            builder.constant([1 << 30], DType.INT32),
            builder.constant([shift], DType.INT8),
            builder.constant([0], source),
            builder.constant([0], target),
            scale32=True,
            rounding_mode=RoundingMode.SINGLE_ROUND,
            per_channel=False,
            input_unsigned=False,
            output_unsigned=False,
        )

    def _add(
        self,
        kind: LayerKind,
        inputs: Sequence[int],
        shape: Sequence[int],
        graph: Graph,
        window: Window | None = None,
        input_channels: int = 0,
        channel_bytes: int = 0,
        offsets: tuple[tuple[int, ...], ...] = (),
        reduced_axes: tuple[int, ...] = (),
    ) -> int:
        output = len(self.tensors)
        self.tensors.append(Tensor(f"t{output}", tuple(shape), 1))
        self.layers.append(
            Layer(
                f"layer{len(self.layers)}",
                kind,
                tuple(inputs),
                output,
                window,
                input_channels,
                1,
                channel_bytes,
                0,
                offsets,
                reduced_axes,
                graph,
            )
        )
        return output


def _same(shape: Sequence[int], kernel: int, stride: int) -> tuple[tuple[int, ...], list[int]]:
    pad, places = list[int](), list[int]()
    for extent in shape[1:3]:
        count = -(-extent // stride)
        missing = max(0, (count - 1) * stride + kernel - extent)
        pad += [missing // 2, missing - missing // 2]
        places.append(count)
    return tuple(pad), places


class MappingMaker:
    """Lays tiles on elements; messages follow from what tiles need."""

    def __init__(self, machine: Machine, network: Network, replicas: int = 1) -> None:
        self.machine = machine
        self.network = network
        self.replicas = replicas
        self.tiles: list[Tile] = []
        self.beside: dict[int, list[tuple[int, int]]] = {}
        for (one, other), link in machine.links_of.items():
            self.beside.setdefault(one, []).append((other, link))

    def split(
        self,
        layer: int,
        elements: Sequence[int],
        axis: int = 3,
        replica: int = 0,
        sums: int = 1,
    ) -> None:
        """Cut a layer along an axis, then its sums; one part an element."""
        row = self.network.layers[layer]
        shape = self.network.tensors[row.output].shape
        parts = len(elements) // sums
        bounds = np.linspace(0, shape[axis], parts + 1).astype(int).tolist()
        channels = np.linspace(0, row.input_channels, sums + 1).astype(int).tolist()
        for part in range(parts):
            box = list(box_of(shape))
            box[axis] = (bounds[part], bounds[part + 1])
            first = len(self.tiles)
            for index in range(sums):
                over = None if sums == 1 else (channels[index], channels[index + 1])
                into = first if index else None
                element = elements[part * sums + index]
                self.tiles.append(Tile(layer, replica, tuple(box), over, element, into))

    def mapping(self) -> Mapping:
        messages = tuple(self._messages())
        tiles = tuple(self.tiles)
        return Mapping(self.machine, self.network, self.replicas, tiles, messages, {}, 0)

    def _messages(self) -> Iterable[Message]:
        found: dict[tuple[int, int | None, Box], list[int]] = {}
        for index, tile in enumerate(self.tiles):
            into = tile.sums_into
            if into is not None and self.tiles[into].element != tile.element:
                found[index, None, tile.box] = [into]
            for tensor, box in inputs_of(self.network, tile):
                for source in self._givers(tensor, tile):
                    common = intersection(self.tiles[source].box, box)
                    if common is not None:
                        found.setdefault((source, tensor, common), []).append(index)
        for (source, tensor, box), targets in found.items():
            item_bytes = 4 if tensor is None else 1
            links = self._links(source, targets)
            size = elements_of(box) * item_bytes
            yield Message(source, tuple(targets), tensor, box, size, links)

    def _givers(self, tensor: int, tile: Tile) -> list[int]:
        return [
            index
            for index, each in enumerate(self.tiles)
            if each.replica == tile.replica
            and each.sums_into is None
            and each.element != tile.element
            and self.network.layers[each.layer].output == tensor
        ]

    def _links(self, source: int, targets: Sequence[int]) -> tuple[int, ...]:
        """Return a tree over shortest paths."""
        machine = self.machine
        start = int(machine.element_router[self.tiles[source].element])
        came: dict[int, tuple[int, int]] = {start: (start, -1)}
        order = [start]
        for router in order:
            for other, link in self.beside.get(router, ()):
                if other not in came:
                    came[other] = (router, link)
                    order.append(other)
        links: dict[int, None] = {}
        for target in targets:
            router = int(machine.element_router[self.tiles[target].element])
            while router != start:
                router, link = came[router]
                links[link] = None
        return tuple(sorted(links))
