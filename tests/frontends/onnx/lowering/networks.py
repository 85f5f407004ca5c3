"""Small ONNX networks, as files and as models, and what the lowered ones compute."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.frontends.onnx.lowering.lower import lower
from mizzen.frontends.onnx.lowering.lowered import Lowered
from mizzen.frontends.onnx.lowering.notes import is_edge, noted, step_of
from mizzen.frontends.onnx.model import Model, Node, TensorType
from mizzen.graph import Array, Operation
from mizzen.ops.control_flow import Custom
from mizzen.ops.limits import WindowLimits
from mizzen.reference import evaluate

LIMITS = WindowLimits(longest_stride=3, largest_kernel=64)
FLOAT = np.dtype(np.float32)


@dataclass(frozen=True)
class Scale:
    """How a tensor is quantised: by one scale, or one for each index along an axis."""

    scale: Any
    zero: Any = 0
    dtype: str = "int8"
    axis: int | None = None

    def shaped(self, rank: int) -> tuple[Array, Array]:
        """Return scales, float32, and zero points that broadcast to a rank."""
        scale, zero = np.asarray(self.scale, np.float32), np.asarray(self.zero, np.int64)
        if self.axis is None:
            return scale, zero
        shape = [-1 if index == self.axis else 1 for index in range(rank)]
        return scale.reshape(shape), (zero + np.zeros(scale.shape, np.int64)).reshape(shape)

    def quantize(self, reals: npt.ArrayLike) -> Array:
        """Quantise as ONNX does: division in float32, half to even."""
        array = np.asarray(reals, np.float32)
        scale, zero = self.shaped(array.ndim)
        limit = np.iinfo(self.dtype)
        steps = np.rint(array / scale) + zero
        return np.clip(steps, limit.min, limit.max).astype(self.dtype)

    def dequantize(self, integers: Array) -> Array:
        """Return real numbers in float32."""
        scale, zero = self.shaped(integers.ndim)
        return (integers.astype(np.int64) - zero).astype(np.float32) * scale


@dataclass(eq=False)
class Network:
    """A network under construction: nodes are added in order."""

    opset: int = 17
    nodes: list[tuple[str, tuple[str, ...], tuple[str, ...], dict[str, Any]]] = field(
        default_factory=list[tuple[str, tuple[str, ...], tuple[str, ...], dict[str, Any]]]
    )
    inputs: dict[str, TensorType] = field(default_factory=dict[str, TensorType])
    outputs: list[str] = field(default_factory=list[str])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    shapes: dict[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    """Of results, float32, that the package onnx does not infer."""

    def input(self, name: str, shape: Sequence[int], dtype: npt.DTypeLike = FLOAT) -> str:
        """Take a tensor."""
        self.inputs[name] = TensorType(np.dtype(dtype), tuple(shape))
        return name

    def constant(self, array: npt.ArrayLike, name: str | None = None) -> str:
        """Add a constant."""
        name = name or f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Add a node, and return the name of its first output."""
        names = tuple(f"{kind.lower()}{len(self.nodes)}_{index}" for index in range(outputs))
        self.nodes.append((kind, inputs, names, attributes))
        return names[0]

    def quantize(self, name: str, scale: Scale) -> str:
        """Add a QuantizeLinear."""
        return self.add("QuantizeLinear", name, *self._parameters(scale), **_axis(scale))

    def dequantize(self, name: str, scale: Scale) -> str:
        """Add a DequantizeLinear."""
        return self.add("DequantizeLinear", name, *self._parameters(scale), **_axis(scale))

    def both(self, name: str, scale: Scale) -> str:
        """Add a QuantizeLinear and a DequantizeLinear."""
        return self.dequantize(self.quantize(name, scale), scale)

    def weight(self, integers: Array, scale: Scale) -> str:
        """Add a quantised constant and its DequantizeLinear."""
        return self.dequantize(self.constant(integers), scale)

    def _parameters(self, scale: Scale) -> tuple[str, str]:
        scales = np.asarray(scale.scale, np.float32)
        zeros = np.broadcast_to(np.asarray(scale.zero), scales.shape).astype(scale.dtype)
        return self.constant(scales), self.constant(zeros)

    @property
    def proto(self) -> Any:
        """The network as ONNX has it."""
        import onnx
        from onnx import helper, numpy_helper

        def kind(dtype: np.dtype[Any]) -> int:
            return helper.np_dtype_to_tensor_dtype(dtype)

        graph = helper.make_graph(
            [helper.make_node(kind, inputs, outputs, **attributes)
             for kind, inputs, outputs, attributes in self.nodes],
            "network",
            [helper.make_tensor_value_info(name, kind(type.dtype), type.shape)
             for name, type in self.inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in self.outputs],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
            value_info=[helper.make_tensor_value_info(name, kind(FLOAT), shape)
                        for name, shape in self.shapes.items()],
        )  # fmt: skip
        opset = helper.make_opsetid("", self.opset)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)

    @property
    def data(self) -> bytes:
        """The network as a file."""
        return self.proto.SerializeToString()

    @property
    def model(self) -> Model:
        """The network as reading gives it."""
        from onnx import helper

        proto = self.proto
        infos = [*proto.graph.input, *proto.graph.output, *proto.graph.value_info]
        types = {
            info.name: TensorType(
                np.dtype(helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)),
                tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim),
            )
            for info in infos
        }
        types |= {name: TensorType(array.dtype, array.shape)
                  for name, array in self.constants.items()}  # fmt: skip
        nodes = tuple(
            Node(index, kind, "", outputs[0], inputs, outputs, attributes)
            for index, (kind, inputs, outputs, attributes) in enumerate(self.nodes)
        )
        return Model(
            "network", self.opset, nodes, tuple(self.inputs), tuple(self.outputs), types,
            self.constants,
        )  # fmt: skip


def _axis(scale: Scale) -> dict[str, int]:
    return {} if scale.axis is None else {"axis": scale.axis}


def lowered(network: Network) -> Lowered:
    """Lower a network."""
    return lower(network.model, LIMITS)


def on_host(lowering: Lowered) -> dict[str, str]:
    """Return what ONNX Runtime computes, and why."""
    return {
        operation.operator_name.removeprefix("onnx."): noted(operation).reason
        for operation in lowering.graph
        if isinstance(operation, Custom) and not is_edge(operation)
    }


def computed(lowering: Lowered, *inputs: Array) -> list[Array]:
    """Return what a lowered network computes."""
    return evaluate(lowering.graph, inputs, custom=edge)


def edge(operation: Operation, operands: Sequence[Array]) -> Sequence[Array]:
    """Compute where the graph's integers begin or end, as the host does."""
    assert isinstance(operation, Custom)
    (array,) = operands
    match operation.operator_name:
        case "onnx.quantize":
            step = step_of(operation)
            steps = np.rint(array / np.float32(step.scale)) + step.zero_point
            dtype = operation.result.dtype.numpy
            return [np.clip(steps, step.low, step.high).astype(dtype)]
        case "onnx.dequantize":
            step = step_of(operation)
            centred = array.astype(np.int64) - step.zero_point
            return [centred.astype(np.float32) * np.float32(step.scale)]
        case "onnx.signed":
            dtype, offset = (np.int8, 128) if array.dtype == np.uint8 else (np.int16, 32768)
            return [(array.astype(np.int64) - offset).astype(dtype)]
        case "onnx.unsigned":
            dtype, offset = (np.uint8, 128) if array.dtype == np.int8 else (np.uint16, 32768)
            return [(array.astype(np.int64) + offset).astype(dtype)]
        case "onnx.narrow" | "onnx.widen":
            return [array.astype(operation.result.dtype.numpy)]
        case name:
            raise AssertionError((name, json.loads(operation.implementation_attrs)))


def from_runtime(network: Network, inputs: Mapping[str, Array]) -> list[Array]:
    """Return what ONNX Runtime computes, fused, with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(network.data, options, ["CPUExecutionProvider"])
    results: Any = session.run(None, dict(inputs))
    return list(results)


def float_model(network: Network, inputs: Mapping[str, Array]) -> list[Array]:
    """Return what ONNX's own NumPy implementation computes in float32."""
    from onnx.reference import ReferenceEvaluator

    results: Any = ReferenceEvaluator(network.proto).run(None, dict(inputs))
    return list(results)
