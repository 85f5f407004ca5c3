"""ONNX: quantised by ONNX Runtime, into the form that says most to other tools.

QuantizeLinear and DequantizeLinear around operators, weights of 8 bits by channel, and all
operators of numbers quantised, whether ONNX Runtime has a kernel of integers for them or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.onnx_network import OnnxNetwork
from mizzen.calibration.onnx_advice import floating, joined
from mizzen.calibration.onnx_graph import (
    beyond_scales,
    cut,
    drop_unused,
    drop_zeros,
    flatten_biases,
    give_names,
    join_limits,
    load,
    node_named,
    opset,
)
from mizzen.calibration.onnx_names import free_names, part_constants
from mizzen.calibration.onnx_quantiser import OPSETS, quantised
from mizzen.calibration.scheme import (
    Activations,
    Method,
    Scheme,
    already_quantised,
    not_installed,
)
from mizzen.calibration.seen import Sample, Seen
from mizzen.calibration.silence import silence
from mizzen.calibration.source import Made
from mizzen.compiler.source import Extents
from mizzen.diagnostics import Diagnostic, MizzenError, fail
from mizzen.files import temporary_folder
from mizzen.frontends.onnx.dialects import is_quantized
from mizzen.frontends.onnx.reading import read

if TYPE_CHECKING:
    from mizzen.analysis.evaluation.reference import Subject
    from mizzen.artifact.interface import TensorInfo
    from mizzen.report.precision import Precision

    Array = npt.NDArray[Any]


class OnnxSource:
    """An ONNX network, ready to be quantised."""

    form = "ONNX"
    suffix = ".onnx"
    methods: tuple[Method, ...] = (Method.MINMAX, Method.PERCENTILE, Method.ENTROPY)

    def __init__(self, data: bytes, path: Path, scheme: Scheme, shapes: Extents) -> None:
        """Read and prepare a network. E189 to E199 for what cannot be quantised."""
        _require_packages()
        self.name = path.name
        network = read(data, self.name, path.parent, shapes)
        if is_quantized(network):
            raise already_quantised(self.name)
        model = load(data, network, path.parent)
        give_names(model)
        self._bits = 16 if scheme.activations is Activations.INT16 else 8
        nodes = list(model.graph.node)
        self._kept = [
            node_named(nodes, name, "--keep-float", self.name) for name in scheme.keep_float
        ]
        free_names(model)
        self._numbers = {
            str(output): index for index, node in enumerate(nodes) for output in node.output
        }
        if scheme.cuts:
            cut(model, [node_named(nodes, name, "--cut", self.name) for name in scheme.cuts])
        self._model = _prepared(model, OPSETS[scheme.activations], self.name)
        self.said = (*network.said, *_raised(opset(model), opset(self._model)))
        self._network = OnnxNetwork(self._model.SerializeToString(), self.name)

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """What it takes."""
        return self._network.inputs

    def seen(self, samples: Iterable[Sample], told: Callable[[int], None]) -> Seen:
        """Infer the samples, and return what every tensor was."""
        observed = _with_all_outputs(self._model)
        network = OnnxNetwork(observed.SerializeToString(), self.name)
        names = [info.name for info in network.outputs]
        seen = Seen(tuple(info.name for info in network.inputs))
        for number, sample in enumerate(samples, 1):
            results = network.run(*(array[np.newaxis] for array in sample))
            tensors = {name: result[0] for name, result in zip(names, results, strict=True)}
            seen.add(sample, {**dict(zip(seen.inputs, sample, strict=True)), **tensors})
            told(number)
        return seen

    def quantised(self, samples: Sequence[Sample], scheme: Scheme, seen: Seen) -> Made:
        """Return the quantised file."""
        inputs = [port.name for port in self._network.inputs]
        made = quantised(self._model, inputs, samples, scheme, self._in_float())
        if scheme.activations is Activations.INT16:
            join_limits(made)
        drop_unused(made)
        left = [
            replace(each, index=self._number(each.name, each.index))
            for each in floating(made, self._model)
        ]
        data = made.SerializeToString()
        _require_sound(data, self.name)
        return Made(data, tuple(left))

    def advice(self, made: Made, seen: Seen) -> Iterator[Diagnostic]:
        """Return where a concatenation leaves a tensor few levels."""
        yield from joined(self._model, seen, self.name, self._bits)

    def precision(self, made: Made, arrays: Sequence[Array]) -> Precision:
        """Hold the quantised network against this one, layer by layer."""
        from mizzen.analysis.comparison.precision import Data, measured
        from mizzen.analysis.comparison.precision_onnx import OnnxNetworks

        networks = OnnxNetworks(made.data, self._model.SerializeToString(), self.name)
        result = measured(networks, self.name, self.name, Data(arrays))
        # Users know the numbers of their own file.
        layers = [
            replace(each, index=self._number(each.name, each.index)) for each in result.layers
        ]
        unmatched = [(self._number(name, at), kind, name) for at, kind, name in result.unmatched]
        return replace(result, layers=tuple(layers), unmatched=tuple(unmatched))

    def networks(self, made: Made) -> tuple[Subject, Subject]:
        """Return the quantised network and this one, to be judged by labels."""
        return OnnxNetwork(made.data, self.name), self._network

    def _number(self, name: str, other: int) -> int:
        """Return the number in the user's file of the operator that computes a tensor."""
        return self._numbers.get(name, other)

    def _in_float(self) -> list[str]:
        """Return the nodes that are not quantised: the user's, and those that no scale reaches."""
        return sorted({*self._excluded(), *beyond_scales(self._model)})

    def _excluded(self) -> Iterator[str]:
        """Return the nodes of the prepared network that compute what the user keeps in float."""
        makers = {output: node for node in self._model.graph.node for output in node.output}
        users = {name: node for node in self._model.graph.node for name in node.input}
        for kept in self._kept:
            pending = [output for output in kept.output if output]
            # What was put together with its successor has that one's output.
            pending = [
                name if name in makers or name not in users else users[name].output[0]
                for name in pending
            ]
            while pending:
                node = makers.get(pending.pop())
                if node is None:
                    continue
                yield str(node.name)
                pending += [name for name in node.input if name not in self._numbers]


def _require_packages() -> None:
    for package in ("onnx", "onnxruntime"):
        if find_spec(package) is None:
            raise not_installed(package, "onnx")


def _require_sound(data: bytes, name: str) -> None:
    """Raise E198 for a quantised network that is not read here, or not by ONNX Runtime."""
    try:
        read(data, name, None, {})
        OnnxNetwork(data, name)
    except MizzenError as error:
        raise fail(
            "E198",
            "the quantised network must be one that can be read, and is not: "
            f"{error.diagnostic.message}",
            origin=error.diagnostic.origin,
            help="rename what the message names where two tensors came to have one name, or keep "
            "that operator in floating point with --keep-float",
        ) from error


def _raised(before: int, after: int) -> Iterator[str]:
    if after > before:
        yield f"operators of opset {before} are written as those of opset {after}"


def _prepared(model: Any, least: int, name: str) -> Any:
    """Return a network with shapes, without what can be computed once, and of an opset of channels.

    E190 where ONNX Runtime cannot read it.
    """
    onnx: Any = import_module("onnx")
    shapes: Any = import_module("onnxruntime.quantization.shape_inference")
    raised = _of_opset(model, least)
    with temporary_folder() as folder, silence():
        source, result = folder / "float.onnx", folder / "prepared.onnx"
        onnx.save(raised, str(source))
        try:
            shapes.quant_pre_process(str(source), str(result), skip_symbolic_shape=True)
        except Exception as error:
            raise fail(
                "E190",
                f"ONNX Runtime must be able to read {name}, and says: "
                f"{' '.join(str(error).split()) or type(error).__name__}",
            ) from None
        prepared: Any = onnx.load(str(result))
    drop_zeros(prepared)
    give_names(prepared)
    flatten_biases(prepared)
    part_constants(prepared)
    return prepared


def _of_opset(model: Any, least: int) -> Any:
    """Return a network of an opset that is new enough, or as it is where ONNX cannot convert it."""
    import onnx

    if opset(model) >= least:
        return model
    try:
        return onnx.version_converter.convert_version(model, least)
    except Exception:
        if least > OPSETS[Activations.INT8]:
            return _of_opset(model, OPSETS[Activations.INT8])
        raise fail(
            "E190",
            f"the network must be of opset {least} or newer to have weights by channel, and is of "
            f"opset {opset(model)}, which ONNX cannot convert",
            help=f"export it again with opset_version={least} or newer",
        ) from None


def _with_all_outputs(model: Any) -> Any:
    """Return a network that gives every tensor that a node computes."""
    import onnx

    copy: Any = onnx.ModelProto()
    copy.CopyFrom(model)
    given = {value.name for value in copy.graph.output}
    kinds = {value.name: value for value in copy.graph.value_info}
    for node in copy.graph.node:
        for output in node.output:
            if output and output not in given and _is_float(kinds.get(output)):
                copy.graph.output.append(kinds[output])
    return copy


def _is_float(value: Any) -> bool:
    return value is not None and value.type.tensor_type.elem_type == 1
