"""The file of a network that is one NPU operator.

Its inputs are the driver's payload, constants, scratch memory, fast scratch memory, then what it
takes, and its state as variable tensors, which a runtime keeps where they lie and sets to the
number for zero at first. Where tensors lie is in the network's metadata.

Ref: Vela 5.2, tflite_writer.py; TFLite Micro, kernels/ethos_u/ethosu.cc and micro_allocator.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.flatbuffer import Record
from mizzen.flatbuffer.memory_plan import ALLOCATION, NOT_IN_ARENA, plan_of
from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Tensor
from mizzen.graph import Value
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.generator.lower import State
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex
from mizzen.targets.families import ETHOS_U

SCRATCH, FAST_SCRATCH = "scratch", "scratch_fast"
"""Names of the tensors that are an NPU operator's memory."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What a network takes or gives, as its file has it; numbers without scales have none."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()


def edge_of_tensor(tensor: Tensor) -> Edge:
    """Return a tensor of a TFLite network."""
    assert tensor.dtype is not None, "rules take integers"
    quantization = tensor.quantization
    if quantization is None:
        return Edge(tensor.name, tensor.shape, tensor.dtype)
    return Edge(
        tensor.name, tensor.shape, tensor.dtype, quantization.scale, quantization.zero_point
    )


def edge_of_value(value: Value, name: str) -> Edge:
    """Return a value of a graph; `name` if it has none. A file has no rank 0."""
    dtype = np.dtype(value.dtype.numpy)
    return Edge(value.name or name, value.shape or (1,), dtype)


def payload_of(program: Program) -> bytes:
    """Return what the driver takes: its header, and the commands."""
    return driver.build(program.words, program.hardware)


def constants_of(program: Program) -> bytes:
    """Return the read-only region."""
    return program.constants[RegionIndex.READ_ONLY].tobytes()


def operator_file(
    name: str,
    inputs: Sequence[Edge],
    outputs: Sequence[Edge],
    states: Sequence[State],
    program: Program,
) -> bytes:
    """Return the file of a network of one program, which takes `inputs`, then `states`."""
    net = NetworkBuilder(name)
    sizes = program.region_bytes
    payload = net.constant("payload", np.frombuffer(payload_of(program), np.uint8))
    constants = net.constant("read_only", np.frombuffer(constants_of(program), np.uint8))
    offsets = {payload: NOT_IN_ARENA, constants: NOT_IN_ARENA}
    scratch = net.tensor(SCRATCH, (sizes[RegionIndex.SCRATCH],), np.uint8)
    fast_bytes = sizes.get(RegionIndex.SCRATCH_FAST, 0)
    fast = net.tensor(FAST_SCRATCH, (fast_bytes,), np.uint8) if fast_bytes else scratch
    taken = [_tensor(net, edge) for edge in inputs]
    kept = [_variable(net, state) for state in states]
    given = [_tensor(net, edge) for edge in outputs]
    offsets |= {scratch: 0, fast: 0}
    places = (*program.inputs, *program.outputs)
    for tensor, place in zip((*taken, *kept, *given), places, strict=True):
        offsets[tensor] = place.offset
    memories = [payload, constants, scratch, fast]
    net.operator(ETHOS_U.code, [*memories, *taken, *kept], given, custom_options=b"")
    net.metadata(ALLOCATION, plan_of([[offsets[index] for index in sorted(offsets)]]).tobytes())
    return net.finish(taken, given)


def _tensor(net: NetworkBuilder, edge: Edge) -> int:
    if not edge.scales:
        return net.tensor(edge.name, edge.shape, edge.dtype)
    return net.tensor(edge.name, edge.shape, edge.dtype, edge.scales, edge.zero_points)


def _variable(net: NetworkBuilder, state: State) -> int:
    """Add a variable tensor; its bytes are the graph's integers, whoever reads them."""
    type, quantization = state.type, state.type.quantization
    dtype = type.dtype.numpy
    if quantization is None:
        return net.tensor(state.name, type.shape, dtype, variable=True)
    return net.tensor(
        state.name,
        type.shape,
        dtype,
        quantization.scales,
        quantization.zero_points,
        variable=True,
    )


TYPES: dict[np.dtype[Any], TensorType] = {
    np.dtype(np.int8): TensorType.INT8,
    np.dtype(np.uint8): TensorType.UINT8,
    np.dtype(np.int16): TensorType.INT16,
    np.dtype(np.int32): TensorType.INT32,
}


def variable_record(state: State) -> Record:
    """Return a state as a variable tensor of a network's record."""
    type, quantization = state.type, state.type.quantization
    scales: Record | None = None
    if quantization is not None:
        scales = {
            "scale": np.asarray(quantization.scales, np.float32),
            "zero_point": np.asarray(quantization.zero_points, np.int64),
        }
    return {
        "name": state.name,
        "shape": np.asarray(type.shape, np.int32),
        "type": int(TYPES[np.dtype(type.dtype.numpy)]),
        "buffer": 0,
        "is_variable": True,
        "quantization": scales,
    }
