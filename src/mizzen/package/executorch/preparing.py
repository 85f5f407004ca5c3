"""A device's program in the words of ExecuTorch: its own kernels only, each with all outputs.

What ExecuTorch has no kernel for but can say with others is said so. States are taken over by
copies after the last call, which must find what they copy as the calls left it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.package.device import (
    Argument,
    DeviceProgram,
    DeviceTensor,
    KernelCall,
    NpuCall,
    State,
    TensorArgument,
    TensorsArgument,
)
from mizzen.package.executorch.kernels import ATEN, COPY_, KERNELS

NARROW_INDEX = "mizzen::narrow_index"
"""Of 64 bits to 32, for tables of `size` rows; ExecuTorch's look-ups check indices."""

COPY = "mizzen::copy"
"""From one tensor to another of the same size."""

NPU_TYPES = tuple(map(np.dtype, ("i1", "u1", "i2", "i4", "?")))
"""What tensors of a delegate can hold (backends/arm/runtime/EthosUBackend.cpp)."""

NO_PADDING = -1
"""The row of an embedding that none is."""

INDEX_TYPE = np.dtype(np.int64)


def prepared(program: DeviceProgram) -> DeviceProgram:
    """Return the program with calls of ExecuTorch's kernels only.

    E174 for an operator without a kernel, E175 for an NPU call that a delegate cannot be.
    """
    return _Preparing(program).program()


class _Preparing:
    def __init__(self, program: DeviceProgram) -> None:
        self._given = program
        self._tensors = list(program.tensors)
        self._calls: list[NpuCall | KernelCall] = []

    def program(self) -> DeviceProgram:
        """Return the program, all of it."""
        for call in self._given.calls:
            if isinstance(call, NpuCall):
                self._npu(call)
            else:
                self._kernel(call)
        self._require_apart()
        outputs, states = self._take_over()
        return replace(
            self._given,
            tensors=tuple(self._tensors),
            outputs=outputs,
            calls=tuple(self._calls),
            states=states,
        )

    def _npu(self, call: NpuCall) -> None:
        for index in (*call.reads, *call.writes):
            tensor = self._tensors[index]
            if tensor.dtype not in NPU_TYPES:
                types = ", ".join(dtype.name for dtype in NPU_TYPES)
                raise _no_delegate(
                    f"tensors of a delegate must be of {types}, and {tensor.name!r} is of "
                    f"{tensor.dtype}",
                    "quantise what the NPU takes and gives",
                )
        self._calls.append(call)

    def _require_apart(self) -> None:
        """Check that no two NPU calls share memory by a compiler's plan."""
        planned = [
            call
            for call in self._given.calls
            if isinstance(call, NpuCall) and call.scratch_offset_bytes is not None
        ]
        if len(planned) > 1:
            raise _no_delegate(
                "NPU operators must not share memory, since the runtime gives each its own, and "
                f"{len(planned)} do by their compiler's plan",
                "compile the PyTorch program instead: its NPU operators share nothing",
            )

    def _kernel(self, call: KernelCall) -> None:
        match call.operator:
            case "mizzen::narrow_index":
                self._narrow_index(call)
            case "mizzen::copy":
                arguments = (("self", dict(call.arguments)["input"]),)
                self._kernel(replace(call, operator=ATEN + "clone", arguments=arguments))
            case "aten::remainder.Scalar" | "aten::remainder.Tensor" if self._is_whole(call):
                self._remainder(call)
            case _ if _of_number(call) in KERNELS:
                self._calls.append(
                    replace(call, operator=_of_number(call), outputs=self._all_outputs(call))
                )
            case _:
                raise _no_kernel(call)

    def _narrow_index(self, call: KernelCall) -> None:
        """Look the index up in a table of all that there are, which refuses others."""
        arguments = dict(call.arguments)
        source = arguments["self"]
        size = arguments["size"]
        assert isinstance(source, TensorArgument), source
        assert isinstance(size, int), call
        numbers = np.arange(size, dtype=np.int32)
        if arguments["counts_back"]:
            table = TensorArgument(self._add("indices", numbers.shape, numbers.dtype, numbers))
            given: tuple[tuple[str, Argument], ...] = (
                ("self", table),
                ("indices", TensorsArgument((source.index,))),
            )
            self._calls.append(replace(call, operator=ATEN + "index.Tensor", arguments=given))
            return
        column = numbers.reshape(size, 1)
        table = TensorArgument(self._add("indices", column.shape, numbers.dtype, column))
        shape = (*self._tensors[source.index].shape, 1)
        index = self._add("index", shape, numbers.dtype)
        given = (
            ("weight", table),
            ("indices", source),
            ("padding_idx", NO_PADDING),
            ("scale_grad_by_freq", False),
            ("sparse", False),
        )
        look_up = replace(call, operator=ATEN + "embedding", arguments=given, outputs=(index,))
        viewed = (("self", TensorArgument(index)),)
        view = replace(call, operator=ATEN + "view", arguments=viewed)
        self._calls += [look_up, view]

    def _is_whole(self, call: KernelCall) -> bool:
        return self._tensors[call.writes[0]].dtype.kind in "iu"

    def _remainder(self, call: KernelCall) -> None:
        """Say the remainder by the quotient: of integers, the kernel has the dividend's sign.

        Ref: ExecuTorch 1.5.1, kernels/portable/cpu/op_remainder.cpp.
        """
        arguments, (output,) = dict(call.arguments), call.writes
        of_number = not isinstance(arguments["other"], TensorArgument)
        kind = "Scalar" if of_number else "Tensor"
        tensor = self._tensors[output]
        quotient = self._add(f"{tensor.name}.quotient", tensor.shape, tensor.dtype)
        multiple = self._add(f"{tensor.name}.multiple", tensor.shape, tensor.dtype)
        other = ("other", arguments["other"])
        steps: tuple[tuple[str, tuple[tuple[str, Argument], ...], int], ...] = (
            (
                f"div.{kind}_mode",
                (("self", arguments["self"]), other, ("rounding_mode", "floor")),
                quotient,
            ),
            (f"mul.{kind}", (("self", TensorArgument(quotient)), other), multiple),
            (
                "sub.Tensor",
                (("self", arguments["self"]), ("other", TensorArgument(multiple)), ("alpha", 1)),
                output,
            ),
        )
        for operator, given, result in steps:
            self._calls.append(
                replace(call, operator=ATEN + operator, arguments=given, outputs=(result,))
            )

    def _add(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], data: Any = None
    ) -> int:
        self._tensors.append(DeviceTensor(name, shape, dtype, data=data))
        return len(self._tensors) - 1

    def _all_outputs(self, call: KernelCall) -> tuple[int, ...]:
        """Return the outputs, with new tensors for those that nothing takes: kernels write all."""
        indices: list[int] = []
        for place, index in enumerate(call.outputs):
            if index is None:
                shape, dtype = _spare(call, place, self._tensors)
                index = self._add(f"{call.operator}[{place}]", shape, dtype)  # noqa: PLW2901
            indices.append(index)
        return tuple(indices)

    def _take_over(self) -> tuple[tuple[int, ...], tuple[State, ...]]:
        """Append the copies of states; return outputs and states as they are then.

        What an output, or another state, needs of a state as it was is kept apart.
        """
        changed = {each.read for each in self._given.states if each.read != each.write}
        wanted = {*self._given.outputs, *(each.write for each in self._given.states)} & changed
        kept = {index: self._kept(index) for index in sorted(wanted)}
        states = tuple(
            each
            if each.read == each.write
            else replace(each, write=kept.get(each.write, each.write))
            for each in self._given.states
        )
        for state in states:
            if state.read != state.write:
                read, write = TensorArgument(state.read), TensorArgument(state.write)
                call = KernelCall(COPY_, (("self", read), ("src", write)), (state.read,))
                self._calls.append(call)
        return tuple(kept.get(index, index) for index in self._given.outputs), states

    def _kept(self, index: int) -> int:
        tensor = self._tensors[index]
        before = self._add(f"{tensor.name}.before", tensor.shape, tensor.dtype)
        self._calls.append(
            KernelCall(ATEN + "clone", (("self", TensorArgument(index)),), (before,))
        )
        return before


def _of_number(call: KernelCall) -> str:
    """Return the operator, or its form for a number where it has one in place of a tensor."""
    other = dict(call.arguments).get("other")
    if not isinstance(other, bool | int | float):
        return call.operator
    name, _, overload = call.operator.partition(".")
    return f"{name}.{overload.replace('Tensor', 'Scalar')}"


def _spare(
    call: KernelCall, place: int, tensors: Sequence[DeviceTensor]
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type of an output that nothing takes."""
    arguments = dict(call.arguments)
    first = tensors[call.reads[0]]
    others = [tensors[index] for index in call.outputs if index is not None]
    match call.operator.removeprefix(ATEN):
        case "max_pool2d_with_indices" | "max.dim" | "min.dim" | "topk" if others:
            return others[0].shape, INDEX_TYPE if place else first.dtype
        case "var_mean.correction" if others:
            return others[0].shape, first.dtype
        case "native_layer_norm":
            normalized = arguments["normalized_shape"]
            assert isinstance(normalized, tuple), normalized
            rank = len(first.shape) - len(normalized)
            return (*first.shape[:rank], *(1 for _ in normalized)), first.dtype
        case "native_group_norm":
            return (_number(arguments["N"]), _number(arguments["group"])), first.dtype
        case "_native_batch_norm_legit_no_training":
            return (0,), first.dtype
        case "split_with_sizes" | "split_with_sizes_copy":
            sizes = arguments["split_sizes"]
            assert isinstance(sizes, tuple), sizes
            return _piece(first, arguments["dim"], _number(sizes[place])), first.dtype
        case "split.Tensor" | "split_copy.Tensor":
            step, axis = _number(arguments["split_size"]), _axis(first, arguments["dim"])
            size = min(step, first.shape[axis] - place * step)
            return _piece(first, axis, size), first.dtype
        case "unbind.int" | "unbind_copy.int":
            axis = _axis(first, arguments["dim"])
            return first.shape[:axis] + first.shape[axis + 1 :], first.dtype
        case _:
            raise _no_kernel(call)


def _number(argument: Argument) -> int:
    assert isinstance(argument, int), argument
    return argument


def _axis(tensor: DeviceTensor, dim: Argument) -> int:
    return _number(dim) % max(1, len(tensor.shape))


def _piece(tensor: DeviceTensor, dim: Argument, size: int) -> tuple[int, ...]:
    axis = _axis(tensor, dim)
    return (*tensor.shape[:axis], size, *tensor.shape[axis + 1 :])


def _no_kernel(call: KernelCall) -> MizzenError:
    if call.operator.startswith("tflite::"):
        helped = (
            "operators of a TFLite network that are not on the NPU need TFLite Micro: write the "
            "artifact as .tflite, or start from the PyTorch program"
        )
    else:
        helped = (
            "write it with other operators, keep it out of the program, or register a kernel of "
            "your own with ExecuTorch and compile with its own tools"
        )
    return fail(
        "E174",
        f"every operator on the processor must have a portable kernel of ExecuTorch, and "
        f"{call.operator} has none",
        origin=call.origin,
        rule="ExecuTorch 1.5.1, kernels/portable/functions.yaml",
        help=helped,
    )


def _no_delegate(message: str, helped: str) -> MizzenError:
    return fail("E175", message, rule="ExecuTorch 1.5, EthosUBackend.cpp", help=helped)
