"""PyTorch's part of a program as calls of core ATen operators.

PyTorch takes the part apart itself, into the operators that every runtime of its programs has.

Ref: PyTorch, Core ATen IR.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.artifact.device.tensors import Tensors
from mizzen.artifact.host_steps import TorchStep
from mizzen.artifact.interface import Array
from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.torch.program import GETITEM, in_core_operators
from mizzen.package.device import (
    Argument,
    DeviceTensor,
    KernelCall,
    Number,
    TensorArgument,
    TensorsArgument,
)

if TYPE_CHECKING:
    from torch.export import ExportedProgram

CLONE = "aten::clone"
READ_STATE = "mizzen::read_state"
"""A mark of the quantiser's, which gives its argument."""


def torch_calls(step: TorchStep, tensors: Tensors, model: str) -> Iterator[KernelCall]:
    """Return the calls of a step. E453 where PyTorch cannot take it apart."""
    return _Calls(step, tensors, model).calls()


class _Calls:
    def __init__(self, step: TorchStep, tensors: Tensors, model: str) -> None:
        self._step = step
        self._tensors = tensors
        self._model = model
        self._program = self._taken_apart()
        self._numbers: dict[Any, int] = {}
        self._results: dict[Any, list[int | None]] = {}

    def calls(self) -> Iterator[KernelCall]:
        """Return them in order."""
        nodes = [node for node in self._program.graph.nodes if not _only_checks(node)]
        wanted = self._name_inputs(nodes)
        self._name_results(nodes, wanted)
        for node in nodes:
            if node.op == "call_function" and str(node.target) != GETITEM:
                yield self._call(node)
        for node, output in wanted:
            if self._numbers[node] != output:
                yield self._clone(node, output)

    def _clone(self, source: Any, output: int | None) -> KernelCall:
        arguments = (("self", TensorArgument(self._numbers[source])), ("memory_format", None))
        return KernelCall(CLONE, arguments, (output,))

    def _taken_apart(self) -> ExportedProgram:
        import torch

        numbers = [self._tensors.number(index) for index in self._step.inputs]
        tensors = [self._tensors.row(number) for number in numbers]
        examples = tuple(
            torch.as_tensor(np.zeros(tensor.shape, tensor.dtype)) for tensor in tensors
        )
        try:
            return in_core_operators(torch.export.export(self._step.module, examples))
        except Exception as error:  # export says what it cannot do in many ways
            raise self._refused(str(error).strip().split("\n", maxsplit=1)[0]) from error

    def _refused(self, reason: str) -> MizzenError:
        kinds = ", ".join(dict.fromkeys(self._step.kinds))
        return fail(
            "E453",
            f"PyTorch must take {kinds} apart into core ATen operators: {reason}",
            origin=Origin(model=self._model),
            help="`mizzen run` executes the program on the host; for a device, replace them",
        )

    def _name_inputs(self, nodes: Sequence[Any]) -> list[tuple[Any, int]]:
        """Number what comes in; return what goes out, with the number it must have."""
        signature = self._program.graph_signature
        given = iter(self._step.inputs)
        held = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        for node in nodes:
            if node.op == "placeholder":
                name = held.get(node.name)
                self._numbers[node] = (
                    self._tensors.number(next(given)) if name is None else self._constant(name)
                )
        (last,) = [node for node in nodes if node.op == "output"]
        outputs = (self._tensors.number(index) for index in self._step.outputs)
        return list(zip(last.args[0], outputs, strict=True))

    def _constant(self, name: str) -> int:
        held: dict[str, Any] = {**self._program.state_dict, **self._program.constants}
        array: Array = held[name].detach().numpy()
        return self._tensors.add(DeviceTensor(name, tuple(array.shape), array.dtype, data=array))

    def _name_results(self, nodes: Sequence[Any], wanted: Sequence[tuple[Any, int]]) -> None:
        """Number what each call gives; what goes out has its number already, once."""
        places = dict(reversed([(node, output) for node, output in wanted]))
        for node in nodes:
            if node.op != "call_function":
                continue
            if str(node.target) == GETITEM:
                source, index = node.args
                number = self._result(node, node.meta["val"], places)
                self._results[source][index] = number
            elif isinstance(node.meta["val"], tuple | list):
                self._results[node] = [None] * len(node.meta["val"])
            else:
                self._results[node] = [self._result(node, node.meta["val"], places)]

    def _result(self, node: Any, made_up: Any, places: dict[Any, int]) -> int:
        import torch

        if not isinstance(made_up, torch.Tensor):
            raise self._refused(f"{node.target} gives no tensor")
        number = places.get(node)
        if number is None:
            dtype = torch.empty(0, dtype=made_up.dtype).numpy().dtype
            number = self._tensors.add(DeviceTensor(node.name, tuple(made_up.shape), dtype))
        self._numbers[node] = number
        return number

    def _call(self, node: Any) -> KernelCall:
        schema = node.target._schema
        if schema.name == READ_STATE:
            return self._clone(node.args[0], self._results[node][0])
        arguments: list[tuple[str, Argument]] = []
        for place, parameter in enumerate(schema.arguments):
            value = node.kwargs.get(parameter.name, parameter.default_value)
            if place < len(node.args):
                value = node.args[place]
            arguments.append((parameter.name, self._argument(value)))
        name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        origin = Origin(model=self._model, kind=name)
        return KernelCall(name, tuple(arguments), tuple(self._results[node]), origin)

    def _argument(self, value: Any) -> Argument:
        import torch

        if isinstance(value, torch.fx.Node):
            return TensorArgument(self._numbers[value])
        if isinstance(value, list | tuple):
            items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType] - of FX
            if any(isinstance(item, torch.fx.Node) for item in items):
                return TensorsArgument(
                    tuple(None if item is None else self._numbers[item] for item in items)
                )
            return tuple(_number(item) for item in items)
        return _number(value)


def _only_checks(node: Any) -> bool:
    """Whether an operator gives nothing: PyTorch checks with it what static shapes say already."""
    return node.op == "call_function" and "val" not in node.meta


def _number(value: Any) -> Number:
    """Return an argument as plain data: types by their NumPy name, layouts and devices left out."""
    import torch

    match value:
        case torch.dtype():
            return torch.empty(0, dtype=value).numpy().dtype.name
        case torch.memory_format() | torch.layout() | torch.device():
            return None
        case _:
            return value
