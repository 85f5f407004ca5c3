"""Two ONNX networks, quantised and floating-point, and the tensors that are in both by name.

What a QuantizeLinear rounds in the one is held against the tensor of that name in the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mizzen.analysis.comparison.pairs import Pair
from mizzen.artifact.interface import Array
from mizzen.artifact.onnx_network import OnnxNetwork
from mizzen.compiler.proof.stimuli import plausible, stimulus
from mizzen.compiler.source import Source
from mizzen.diagnostics import fail

QUANTIZE = "QuantizeLinear"

BEFORE_ROUNDING = "_QuantizeLinear_Input"
"""What ONNX Runtime's quantiser adds to the name of an output, which stays that of the result."""

WIDEST_BYTES = 2

FLOAT = 1
INTEGERS = {(0, 255): 2, (-128, 127): 3, (0, 65535): 4, (-32768, 32767): 5}
"""Numbers of types. Ref: ONNX, onnx.proto, TensorProto.DataType."""


def networks_of(quantised: Source, floating: Source) -> OnnxNetworks:
    """Read both files. E189 to E194 as `read`."""
    from mizzen.frontends.onnx.reading import read
    from mizzen.frontends.onnx.writing import submodel

    models = [read(each.data, each.name, each.folder) for each in (quantised, floating)]
    one, other = (submodel(each, each.nodes, each.inputs, each.outputs) for each in models)
    return OnnxNetworks(one, other, quantised.name)


class OnnxNetworks:
    """A quantised network and its floating-point one, both in ONNX Runtime."""

    example = None
    """A file has no inputs."""

    def __init__(self, quantised: bytes, floating: bytes, name: str) -> None:
        """Read both. E190 for what ONNX Runtime does not take, E495 for other inputs."""
        import onnx

        models: list[Any] = [onnx.load_model_from_string(data) for data in (quantised, floating)]
        # The second knows the types of what the first rounds, whose own are out of date.
        shaped: Any = onnx.shape_inference.infer_shapes(models[1])
        self.pairs: Sequence[Pair] = tuple(_pairs(models[0], _floats(shaped)))
        paired = {pair.index for pair in self.pairs}
        self.unmatched: Sequence[tuple[int, str, str]] = tuple(
            each for each in _rounded(models[0]) if each[0] not in paired
        )
        self._ours, self._theirs = (
            OnnxNetwork(_giving(model, kinds).SerializeToString(), name)
            for model, kinds in (
                (models[0], {str(pair.ours): _kind(pair) for pair in self.pairs}),
                (shaped, {str(pair.theirs): FLOAT for pair in self.pairs}),
            )
        )
        self.inputs = self._ours.inputs
        if [info.shape for info in self.inputs] != [info.shape for info in self._theirs.inputs]:
            raise fail(
                "E495",
                f"{name} must take what its floating-point network does, and takes other shapes",
                help="give the network that was quantised",
            )
        self.values_bytes = max(1, sum(map(_size, shaped.graph.value_info)))

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs, `[count, *shape]` each: real numbers about zero."""
        return plausible([stimulus(info.shape, info.dtype) for info in self.inputs], count, seed)

    def infer(self, arrays: Sequence[Array]) -> tuple[Mapping[Any, Array], Mapping[Any, Array]]:
        """Return the tensors of both, of inputs `[N, *shape]`."""
        one, other = (
            dict(zip((info.name for info in network.outputs), network.run(*arrays), strict=True))
            for network in (self._ours, self._theirs)
        )
        return one, other


def _floats(model: Any) -> set[str]:
    """Return the tensors of floating-point numbers that nodes compute."""
    computed = {output for node in model.graph.node for output in node.output}
    values = [*model.graph.value_info, *model.graph.output]
    return {value.name for value in values if value.type.tensor_type.elem_type == FLOAT} & computed


def _rounded(model: Any) -> Iterator[tuple[int, str, str]]:
    """Return the operators whose results are rounded: place, kind and result."""
    taken = {node.input[0] for node in model.graph.node if node.op_type == QUANTIZE}
    for index, node in enumerate(model.graph.node):
        for output in node.output:
            if output in taken:
                yield index, node.op_type, output


def _pairs(model: Any, floats: set[str]) -> Iterator[Pair]:
    from onnx import numpy_helper

    held: dict[str, Any] = {
        tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer
    }
    roundings = {node.input[0]: node for node in model.graph.node if node.op_type == QUANTIZE}
    for index, kind, name in _rounded(model):
        node = roundings[name]
        scale = held.get(node.input[1])
        zero = held.get(node.input[2]) if len(node.input) > 2 else np.zeros(1, np.uint8)
        theirs = name.removesuffix(BEFORE_ROUNDING)
        if theirs not in floats or scale is None or scale.size != 1 or zero is None:
            continue
        if zero.dtype.kind in "iu" and zero.dtype.itemsize <= WIDEST_BYTES:
            limits = np.iinfo(zero.dtype)
            yield Pair(
                index, kind, theirs, theirs, node.output[0], theirs, float(scale.reshape(-1)[0]),
                int(zero.reshape(-1)[0]), int(limits.min), int(limits.max),
            )  # fmt: skip


def _giving(model: Any, kinds: Mapping[str, int]) -> Any:
    """Return a network that gives tensors of these types alone."""
    import onnx

    copy: Any = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()
    )
    return copy


def _kind(pair: Pair) -> int:
    """Return the type of a pair's integers."""
    return INTEGERS[pair.low, pair.high]


def _size(value: Any) -> int:
    return 4 * math.prod(max(1, dim.dim_value) for dim in value.type.tensor_type.shape.dim)
