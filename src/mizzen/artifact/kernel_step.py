"""Kernels of ExecuTorch on the host: PyTorch computes what they are named after.

A kernel writes to tensors that are there, as it does on a device, so that tensors that share memory
do so here. What only ExecuTorch has is a copy in another form.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mizzen.artifact.host_steps import PROCESS
from mizzen.artifact.interface import Array, Values
from mizzen.diagnostics import MizzenError, fail
from mizzen.package.executorch.reading import CallKernel, PteTensor, Tensors, Value

COPIES = {
    "dim_order_ops::_clone_dim_order.out": 4,
    "dim_order_ops::_to_dim_order_copy.out": 4,
    "et_copy::_d2h_copy.out": 2,
    "et_copy::_h2d_copy.out": 2,
    "executorch_prim::et_view.default": 3,
}
"""Kernels that copy their first argument into their output, which is the last of so many."""

TYPE_NAMES = ("dtype", "out_dtype")
LAYOUT_NAME = "memory_format"

REFUSALS = (
    RuntimeError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    UserWarning,
)
"""What PyTorch raises for arguments that do not suit; warnings are errors for some users."""


LOOK_UP = "aten::embedding.out"
"""Takes a table, then the indices of its rows; also how a program checks an index."""


class KernelStep:
    """Consecutive kernels of a program, whose values they take and change.

    inputs, outputs  places of the tensors that come from other steps, and of those that change
    elements         of the largest tensor of each kernel
    """

    on_npu = False

    def __init__(
        self,
        calls: Sequence[CallKernel],
        values: Sequence[Value],
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        self._calls = [(call, _function(call.kernel)) for call in calls]
        self._values = values
        self._constants = {
            index: _tensor(value, np.array(value.data))
            for index in inputs
            if isinstance(value := values[index], PteTensor) and value.is_constant
        }
        self.kinds = tuple(call.kernel for call in calls)
        self.elements = tuple(_largest(call, values) for call in calls)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)

    @property
    def row_counts(self) -> dict[int, int]:
        """The tensors that look up rows of a constant table, to how many rows it has."""
        return {
            call.arguments[1]: table.shape[0]
            for call, _ in self._calls
            if call.kernel == LOOK_UP
            and isinstance(table := self._values[call.arguments[0]], PteTensor)
            and table.is_constant
        }

    def run(self, values: Values, batch: int) -> None:
        """Compute the outputs, one inference after the other."""
        import torch

        if os.getpid() != PROCESS:  # PyTorch's threads do not come along when a process is forked
            torch.set_num_threads(1)
        for index in self.outputs:
            value = self._values[index]
            if isinstance(value, PteTensor) and value.place is None:
                values[index] = np.zeros((batch, *value.stored_shape), value.dtype)
        arrays = {index: values[index] for index in {*self.inputs, *self.outputs}}
        with torch.no_grad():
            for inference in range(batch):
                bound = {index: array[inference, ...] for index, array in arrays.items()}
                for call, function in self._calls:
                    self._call(call, function, bound)

    def _call(self, call: CallKernel, function: Kernel, bound: dict[int, Array]) -> None:
        given = [self._argument(place, bound) for place in call.arguments]
        shapes = [item.shape for item in given if hasattr(item, "shape")]
        try:
            function(given)
        except (*REFUSALS, MemoryError) as error:
            reason = str(error).strip() or type(error).__name__
            raise _failed(call, reason.splitlines()[0]) from error
        if shapes != [item.shape for item in given if hasattr(item, "shape")]:
            raise _failed(call, "its output has another shape than the program says")

    def _argument(self, place: int, bound: dict[int, Array]) -> Any:
        match self._values[place]:
            case PteTensor() if place in self._constants:
                return self._constants[place]
            case PteTensor() as tensor:
                return _tensor(tensor, bound[place])
            case Tensors(places):
                return [None if index is None else self._argument(index, bound) for index in places]
            case tuple(numbers):
                return list(numbers)
            case value:
                return value


def _largest(call: CallKernel, values: Sequence[Value]) -> int:
    shapes = [value.shape for value in map(values.__getitem__, call.arguments)
              if isinstance(value, PteTensor)]  # fmt: skip
    return max([math.prod(shape) for shape in shapes], default=1)


Kernel = Callable[[list[Any]], None]
"""Computes a kernel with its arguments, outputs among them."""


def _tensor(tensor: PteTensor, array: Array) -> Any:
    """Return a view of an array in the order of a tensor's dimensions."""
    import torch

    held = array if array.flags.writeable else np.require(array, requirements="W")
    back: list[int] = np.argsort(tensor.dim_order).tolist()
    view: Any = torch.as_tensor(held)
    return view.permute(back)


def _function(kernel: str) -> Kernel:
    """Return the function of a kernel. E182 for one that neither PyTorch nor this has."""
    count = COPIES.get(kernel)
    if count is not None:
        return _copy(count)
    operator = _operator(kernel)
    if operator is not None:
        return _direct(operator)
    functional = _operator(kernel.removesuffix(".out") + ".default")
    if functional is not None and kernel.endswith(".out"):
        return _through_copy(functional)
    raise fail(
        "E182",
        f"kernels of a program must be those that PyTorch has, and {kernel} is not one",
        help="run the program on a device, or in ExecuTorch's runtime with that kernel",
    )


def _operator(kernel: str) -> Any:
    """Return PyTorch's operator of a kernel's name, None for one that is not on tensors.

    Names come from outside, and PyTorch finds operators by attribute.
    """
    import torch

    from mizzen.frontends.torch.exported_rules import computes_on_tensors

    name, _, overload = kernel.partition(".")
    library, separator, base = name.partition("::")
    if not separator or not computes_on_tensors(
        f"torch.ops.{library}.{base}.{overload or 'default'}"
    ):
        return None
    packet = getattr(getattr(torch.ops, library), base, None)
    operator = getattr(packet, overload or "default", None)
    return operator if hasattr(operator, "_schema") else None


def _copy(count: int) -> Kernel:
    def copy(given: list[Any]) -> None:
        source, target = given[0], given[count - 1]
        target.copy_(source.reshape(target.shape))

    return copy


def _direct(operator: Any) -> Kernel:
    """Return a kernel that PyTorch has under its own name."""
    parameters = list(operator._schema.arguments)

    def call(given: list[Any]) -> None:
        if len(given) < len(parameters):
            raise ValueError(f"it takes {len(parameters)} arguments, not {len(given)}")
        pairs = [
            (parameter, _converted(parameter.name, v))
            for parameter, v in zip(parameters, given, strict=False)
        ]
        named = {parameter.name: value for parameter, value in pairs if parameter.kwarg_only}
        operator(*(value for parameter, value in pairs if not parameter.kwarg_only), **named)

    return call


def _through_copy(operator: Any) -> Kernel:
    """Return a kernel whose result PyTorch makes anew."""
    parameters = list(operator._schema.arguments)

    def call(given: list[Any]) -> None:
        if len(given) < len(parameters) + 1:
            raise ValueError(
                f"it takes {len(parameters)} arguments and an output, not {len(given)}"
            )
        pairs = [
            (parameter, _converted(parameter.name, v))
            for parameter, v in zip(parameters, given, strict=False)
        ]
        named = {parameter.name: value for parameter, value in pairs if parameter.kwarg_only}
        result = operator(
            *(value for parameter, value in pairs if not parameter.kwarg_only), **named
        )
        given[len(parameters)].copy_(result)

    return call


def _converted(name: str, value: Any) -> Any:
    """Return an argument as PyTorch takes it: types and layouts are numbers in a program."""
    import torch

    if value is None or not isinstance(value, int):
        return value
    if name in TYPE_NAMES:
        from mizzen.flatbuffer.pte import ScalarType

        return getattr(torch, ScalarType(value).name.lower())
    if name == LAYOUT_NAME:
        layouts = (torch.contiguous_format, torch.preserve_format, torch.channels_last,
                   torch.channels_last_3d)  # fmt: skip
        return layouts[value]
    return value


def _failed(call: CallKernel, reason: str) -> MizzenError:
    return fail(
        "E730",
        f"PyTorch must compute {call.kernel}, but says: {reason}",
        help="the values do not suit the operator, or the program is damaged",
    )
