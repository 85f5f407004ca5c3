"""The network in a program's file: layers, tensors, operations and their constants."""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.diagnostics import MizzenError
from mizzen.graph import Array, Blobs, Graph, TensorType, Value, parse, print_graph
from mizzen.mesh.network.edges import Edge, Edges, Move
from mizzen.mesh.network.network import WINDOWED, Layer, LayerKind, Network, Tensor, Window
from mizzen.mesh.program.files.container import Arrays, wrong
from mizzen.ops import verify

if TYPE_CHECKING:
    from mizzen.mesh.program.files.header import EdgePart, LayerPart, NetworkPart

BLOB = "blob "
CONSTANT = "constant."
MOST_ELEMENTS = 1 << 26
"""Of a tensor: four hundred times the largest one of ResNet-50."""

FEATURE_MAP, MATRICES = 4, 3
"""Dimensions of the tensors of windowed layers, and of products of two tensors."""


def network_header(network: Network) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header's part about a network, and its constants, each once."""
    constants: dict[str, Array] = {}
    layers = [_layer_header(layer, constants) for layer in network.layers]
    tensors = [
        {"name": tensor.name, "shape": list(tensor.shape), "item_bytes": tensor.item_bytes}
        for tensor in network.tensors
    ]
    return {
        "name": network.name,
        "tensors": tensors,
        "layers": layers,
        "inputs": list(network.inputs),
        "outputs": list(network.outputs),
        "edges": None if network.edges is None else asdict(network.edges),
    }, constants


def _layer_header(layer: Layer, constants: dict[str, Array]) -> dict[str, Any]:
    window = layer.window
    sides = ("kernel", "stride", "dilation", "padding")
    return {
        "name": layer.name,
        "kind": layer.kind.value,
        "inputs": list(layer.inputs),
        "output": layer.output,
        "window": None if window is None else {side: getattr(window, side) for side in sides},
        "input_channels": layer.input_channels,
        "weight_item_bytes": layer.weight_item_bytes,
        "channel_bytes": layer.channel_bytes,
        "constant_bytes": layer.constant_bytes,
        "offsets": layer.offsets,
        "reduced_axes": layer.reduced_axes,
        "chain": None if layer.chain is None else _chain_text(layer.chain, constants),
    }


def _chain_text(chain: Graph, constants: dict[str, Array]) -> str:
    text, *blobs = print_graph(_plain(chain), Blobs.APPENDED).split(f"\n{BLOB}")
    for blob in blobs:
        key, data = blob.split(maxsplit=1)
        content = b64decode(data.strip().strip('"'))
        constants[f"{CONSTANT}{key}"] = np.frombuffer(content, np.uint8)
    return text


def _plain(chain: Graph) -> Graph:
    """Return a chain as a file has it: integers, without what they stand for."""
    plain = Graph(chain.name)
    values: dict[Value, Value] = {}
    for value in chain.inputs:
        values[value] = plain.add_input(TensorType(value.shape, value.dtype))
    for operation in chain.sorted():
        made = plain.add(
            operation.kind,
            [values[value] for value in operation.operands],
            [TensorType(value.shape, value.dtype) for value in operation.results],
            operation.attributes,
            origin=operation.origin,
        )
        values.update(zip(operation.results, made.results, strict=True))
    plain.set_outputs([values[value] for value in chain.outputs])
    return plain


def read_network(part: NetworkPart, arrays: Arrays) -> Network:
    """Return the network of a file. E538 for layers that do not fit their tensors."""
    tensors = tuple(Tensor(each.name, each.shape, each.item_bytes) for each in part.tensors)
    for index, tensor in enumerate(tensors):
        if math.prod(tensor.shape) > MOST_ELEMENTS:
            field = f"network.tensors[{index}].shape"
            raise wrong(arrays.name, field, f"at most {MOST_ELEMENTS} elements", tensor.shape)
    layers = tuple(
        _layer(arrays, f"network.layers[{index}]", layer, tensors)
        for index, layer in enumerate(part.layers)
    )
    network = Network(part.name, tensors, layers, part.inputs, part.outputs)
    for field, must, came in _order(network):
        raise wrong(arrays.name, field, must, came)
    return replace(network, edges=_edges(arrays, part, network))


def _edges(arrays: Arrays, part: NetworkPart, network: Network) -> Edges | None:
    """Return the edges of a file. E538 for moves that do not lead from shape to shape."""
    if part.edges is None:
        return None
    sides: list[list[Edge]] = []
    for side, tensors in (("inputs", network.inputs), ("outputs", network.outputs)):
        entries: tuple[EdgePart, ...] = getattr(part.edges, side)
        if len(entries) != len(tensors):
            raise wrong(arrays.name, f"network.edges.{side}", f"{len(tensors)} rows", len(entries))
        edges: list[Edge] = []
        for index, (entry, tensor) in enumerate(zip(entries, tensors, strict=True)):
            moves = tuple(Move(move.shape, move.order) for move in entry.moves)
            edge = Edge(entry.shape, moves, entry.scale, entry.zero_point)
            shape = network.tensors[tensor].shape
            first, last = (entry.shape, shape) if side == "inputs" else (shape, entry.shape)
            if not edge.leads(first, last):
                field = f"network.edges.{side}[{index}]"
                raise wrong(arrays.name, field, f"moves from {first} to {last}", entry.moves)
            edges.append(edge)
        sides.append(edges)
    return Edges(*sides)


def _order(network: Network) -> Iterator[tuple[str, str, object]]:
    """Return the faults in the order of layers: each tensor is there before it is taken."""
    there: set[int] = set()
    for index, tensor in enumerate(network.inputs):
        if tensor >= len(network.tensors) or tensor in there:
            yield f"network.inputs[{index}]", "a tensor, each once", tensor
        there.add(tensor)
    for index, layer in enumerate(network.layers):
        for taken in layer.inputs:
            if taken not in there:
                yield f"network.layers[{index}].inputs", "tensors given before", taken
        if layer.output in there:
            yield f"network.layers[{index}].output", "a tensor given once", layer.output
        there.add(layer.output)
    for index, tensor in enumerate(network.outputs):
        if tensor not in there:
            yield f"network.outputs[{index}]", "a tensor that is given", tensor


def _layer(arrays: Arrays, field: str, part: LayerPart, tensors: tuple[Tensor, ...]) -> Layer:
    for name, indices in (("inputs", part.inputs), ("output", (part.output,))):
        for index in indices:
            if index >= len(tensors):
                raise wrong(arrays.name, f"{field}.{name}", f"below {len(tensors)}", index)
    window = part.window and Window(**part.window.as_dict())
    layer = Layer(
        part.name,
        LayerKind(part.kind),
        part.inputs,
        part.output,
        window,
        part.input_channels,
        part.weight_item_bytes,
        part.channel_bytes,
        part.constant_bytes,
        part.offsets,
        part.reduced_axes,
        None if part.chain is None else _chain(arrays, f"{field}.chain", part.chain),
    )
    for name, must, came in _form(layer, tensors):
        raise wrong(arrays.name, f"{field}.{name}", must, came)
    return layer


def _form(layer: Layer, tensors: tuple[Tensor, ...]) -> Iterator[tuple[str, str, object]]:
    """Return the fields of a layer that do not fit its kind."""
    shapes = [tensors[index].shape for index in layer.inputs]
    output = tensors[layer.output].shape
    if not shapes:
        yield "inputs", "one tensor at least", "none"
        return
    match layer.kind:
        case kind if kind in WINDOWED:
            yield from _windowed(layer, shapes, output)
        case LayerKind.POINTWISE:
            yield from _beside(shapes, output)
        case LayerKind.MATMUL:
            yield from _matmul(shapes, output)
        case LayerKind.MOVEMENT:
            ranks = [len(extents) for extents in (*shapes, *layer.offsets)]
            if len(layer.offsets) != len(shapes) or set(ranks) != {len(output)}:
                yield "offsets", f"{len(shapes)} of {len(output)} numbers", layer.offsets
        case LayerKind.REDUCTION:
            yield from _reduction(layer, shapes, output)
        case _:
            pass
    if layer.chain is not None:
        yield from _operations(layer.chain, shapes, output)


def _windowed(
    layer: Layer, shapes: list[tuple[int, ...]], output: tuple[int, ...]
) -> Iterator[tuple[str, str, object]]:
    if layer.window is None:
        yield "window", f"given for a layer {layer.kind.value}", None
        return
    if len(shapes[0]) != FEATURE_MAP or len(output) != FEATURE_MAP:
        yield "inputs", "of four dimensions, as the output", shapes[0]
        return
    if layer.kind is LayerKind.CONVOLUTION:
        if layer.input_channels != shapes[0][-1]:
            yield "input_channels", f"{shapes[0][-1]}, as of the input", layer.input_channels
    elif shapes[0][-1] != output[-1]:
        yield "inputs", f"of {output[-1]} channels, as the output", shapes[0][-1]
    yield from _beside(shapes[1:], output)


def _beside(
    shapes: list[tuple[int, ...]], output: tuple[int, ...]
) -> Iterator[tuple[str, str, object]]:
    for shape in shapes:
        whole = output[len(output) - len(shape) :]
        if len(shape) > len(output) or any(
            extent not in (1, full) for extent, full in zip(shape, whole, strict=True)
        ):
            yield "inputs", f"broadcast to {list(output)}", list(shape)


def _matmul(
    shapes: list[tuple[int, ...]], output: tuple[int, ...]
) -> Iterator[tuple[str, str, object]]:
    ranks = [len(shape) for shape in (*shapes[:2], output)]
    if ranks != [MATRICES] * 3:
        yield "inputs", "two of three dimensions", [list(shape) for shape in shapes]
        return
    (batch, lines, depth), right = shapes[:2]
    if right != (batch, depth, output[2]) or output[:2] != (batch, lines):
        yield "inputs", f"of a product of {list(output)}", [list(shape) for shape in shapes]
    yield from _beside(shapes[2:], output)


def _reduction(
    layer: Layer, shapes: list[tuple[int, ...]], output: tuple[int, ...]
) -> Iterator[tuple[str, str, object]]:
    for shape in shapes:
        if len(shape) != len(output) or any(
            extent not in (1, full) and (full != 1 or axis not in layer.reduced_axes)
            for axis, (extent, full) in enumerate(zip(shape, output, strict=True))
        ):
            yield "reduced_axes", f"those that make {list(output)}", list(layer.reduced_axes)
    if any(axis >= len(output) for axis in layer.reduced_axes):
        yield "reduced_axes", f"below {len(output)}", list(layer.reduced_axes)


def _operations(
    chain: Graph, shapes: list[tuple[int, ...]], output: tuple[int, ...]
) -> Iterator[tuple[str, str, object]]:
    given = [value.shape for value in chain.inputs]
    if given != shapes or [value.shape for value in chain.outputs] != [output]:
        came = [list(value.shape) for value in (*chain.inputs, *chain.outputs)]
        must = f"from {[list(shape) for shape in shapes]} to {list(output)}"
        yield "chain", must, came


def _chain(arrays: Arrays, field: str, text: str) -> Graph:
    """Return the operations of a layer, with their constants."""
    blobs: list[str] = []
    for name in arrays.places:
        key = name.removeprefix(CONSTANT)
        if name.startswith(CONSTANT) and key in text:
            content = b64encode(arrays.take(name, "|u1").tobytes()).decode()
            blobs.append(f'{BLOB}{key} "{content}"')
    try:
        graph = parse("\n".join((text, *blobs)) + "\n", field)
        problems = verify(graph)
    except (MizzenError, ValueError, RecursionError) as error:
        raise wrong(arrays.name, field, "operations of TOSA", str(error)) from error
    if problems:
        raise wrong(arrays.name, field, "operations of TOSA", problems[0].message)
    return graph
