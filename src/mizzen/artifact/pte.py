"""ExecuTorch programs as what an artifact holds.

Values keep their places as indices; those in planned memory lie in the arena, so that tensors which
share bytes on a device share them here. A delegate of the Ethos-U backend is an NPU step, kernels
between delegates are one host step, and what makes integers of real numbers, and back, needs no
PyTorch. Memory that is read before it is written is state: the runtime never clears it.

Ref: ExecuTorch 1.5, backends/arm/runtime/EthosUBackend.cpp; runtime/executor/method.cpp;
backends/cortex_m/ops/op_quantize_per_tensor.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from mizzen.artifact.arena import Arena, Block, Place
from mizzen.artifact.delegate import program_of
from mizzen.artifact.ethos_u import ETHOS_U
from mizzen.artifact.execution import Contents
from mizzen.artifact.host_steps import DequantizeStep, OrderStep, QuantizeStep
from mizzen.artifact.interface import Array, Carried, Origins, Shape, TensorInfo, Values
from mizzen.artifact.kernel_step import KernelStep
from mizzen.artifact.program import CompiledPart
from mizzen.artifact.steps import NpuStep, Step
from mizzen.diagnostics import MizzenError, fail
from mizzen.package.executorch import reading, vela_bin
from mizzen.package.executorch.kernels import QUANTIZED
from mizzen.package.executorch.reading import (
    CallDelegate,
    CallKernel,
    Free,
    JumpFalse,
    Move,
    PteProgram,
    PteTensor,
    Tensors,
)
from mizzen.package.executorch.vela_bin import BACKENDS, VelaTensor
from mizzen.package.executorch.writing import DELEGATE
from mizzen.targets.ethos_u.machine.program import TensorAddress

CORTEX_M = "cortex_m::"
"""Kernels for Arm's microcontrollers, which ExecuTorch's own lowering for Ethos-U puts around the
delegates. These two are those of `QUANTIZED`, but for the inverse of the scale, which is float."""

QUANTIZE = {QUANTIZED + "quantize_per_tensor.out": 7, CORTEX_M + "quantize_per_tensor.out": 7}
DEQUANTIZE = {QUANTIZED + "dequantize_per_tensor.out": 8, CORTEX_M + "dequantize_per_tensor.out": 7}
"""Kernels by name: how many arguments they have, the last of which is the result."""


UNKNOWN: Origins = {}
"""Of a program without its report."""


class DelegateStep(NpuStep):
    """An NPU operator that takes and gives the bytes of its tensors, whatever their shapes."""

    def __init__(self, part: CompiledPart, shapes: Sequence[Shape]) -> None:
        super().__init__(ETHOS_U, part)
        self._shapes = tuple(shapes)

    def run_on(self, simulator: Any, values: Values, batch: int) -> None:
        """Compute the outputs from the inputs in `values`, with a simulator of the program."""
        places = zip(self.inputs, self.program.inputs, strict=True)
        given = [values[index].reshape(batch, *place.shape) for index, place in places]
        outcome = simulator.run(given, batch)
        results = zip(self.outputs, self._shapes, outcome.outputs, strict=True)
        for index, shape, array in results:
            values[index] = array.reshape(batch, *shape)


def contents_of(data: bytes, name: str, origins: Sequence[Origins] = ()) -> Contents:
    """Read a program; `origins` of the streams of its NPU operators, as they are called.

    Raises as `mizzen.package.executorch.reading.read`; E170 to E172 for a damaged delegate, E177
    for one of another backend, E178 for what is no sequence of calls, E181 for calls that do not
    fit, E527 for tensors that an old runtime may turn, E165 without PyTorch where a kernel needs
    it, E182 for a kernel that it does not have.
    """
    return _Contents(reading.read(data, name), name, origins).made()


class _Contents:
    def __init__(self, program: PteProgram, name: str, origins: Sequence[Origins]) -> None:
        self._program = program
        self._name = name
        self._origins = iter(origins)
        self._moved: dict[int, int] = {}

    def made(self) -> Contents:
        """Return all of it."""
        program = self._program
        calls = list(self._calls())
        steps = list(self._steps(calls))
        self._require_given(calls)
        before, inputs = self._edge(program.inputs, given=True)
        outputs_now = [self._resolved(index) for index in program.outputs]
        behind, outputs = self._edge(outputs_now, given=False)
        tensors = self._tensors()
        infos = {index: _info(f"value_{index}", tensor) for index, tensor in tensors.items()}
        for word, places, edge in (("input", program.inputs, inputs),
                                   ("output", outputs_now, outputs)):  # fmt: skip
            known = [tensors[index].name for index in places]
            for place, (index, made) in enumerate(zip(places, edge, strict=True)):
                name = known[place] if known.count(known[place]) == 1 else ""
                infos[made] = _info(name or f"{word}_{place}", tensors[index])
        constants = {
            index: tensor.data
            for index, tensor in tensors.items()
            if tensor.data is not None and tensor.is_constant
        }
        return Contents(
            inputs=inputs,
            outputs=outputs,
            infos=infos,
            steps=(*before, *steps, *behind),
            constants=constants,
            carried=self._carried(calls),
            arena=self._arena(tensors),
        )

    def _require_given(self, calls: Sequence[CallKernel | CallDelegate]) -> None:
        """Check that something gives each tensor outside planned memory before it is taken."""
        known = {
            index
            for index, tensor in self._tensors().items()
            if tensor.place is not None or tensor.data is not None
        }
        known.update(self._program.inputs)
        for call in calls:
            made = set(self._made(call))
            for index in made:
                if self._tensor(index).is_constant:
                    raise self._wrong(f"nothing must write to value {index}, which is a constant")
            self._require(set(self._given(call)) - made, known)
            known |= made
        self._require(map(self._resolved, self._program.outputs), known)

    def _require(self, indices: Iterable[int], known: set[int]) -> None:
        for index in indices:
            if index not in known:
                raise self._wrong(f"something must give value {index} before it is taken")

    def _tensors(self) -> dict[int, PteTensor]:
        return {
            index: tensor
            for index, tensor in enumerate(self._program.values)
            if isinstance(tensor, PteTensor)
        }

    def _calls(self) -> Iterator[CallKernel | CallDelegate]:
        """Return the calls in order, with what was moved in its new place."""
        for place, instruction in enumerate(self._program.instructions):
            match instruction:
                case Move(source, target):
                    self._moved[target] = self._resolved(source)
                case Free():
                    pass
                case JumpFalse():
                    raise fail(
                        "E178",
                        f"{self._name}: a program must be a sequence of calls, and instruction "
                        f"{place} jumps: it has control flow",
                        help="export the branches as programs of their own, or run it on a device",
                    )
                case CallKernel(kernel, arguments):
                    yield CallKernel(kernel, tuple(map(self._resolved, arguments)))
                case CallDelegate(delegate, arguments):
                    yield CallDelegate(delegate, tuple(map(self._resolved, arguments)))

    def _resolved(self, place: int) -> int:
        return self._moved.get(place, place)

    def _steps(self, calls: Sequence[CallKernel | CallDelegate]) -> Iterator[Step]:
        for kind, run in groupby(calls, self._kind):
            if kind == "kernels":
                yield self._kernels([each for each in run if isinstance(each, CallKernel)])
                continue
            for call in run:
                yield self._alone(call)

    def _kind(self, call: CallKernel | CallDelegate) -> str:
        if isinstance(call, CallDelegate):
            return "delegate"
        return "numbers" if call.kernel in QUANTIZE or call.kernel in DEQUANTIZE else "kernels"

    def _alone(self, call: CallKernel | CallDelegate) -> Step:
        if isinstance(call, CallDelegate):
            return self._delegate(call)
        return self._quantize(call) if call.kernel in QUANTIZE else self._dequantize(call)

    def _kernels(self, calls: Sequence[CallKernel]) -> KernelStep:
        from mizzen.quantize import register_operators, require_torch

        require_torch()
        register_operators()
        reads = dict.fromkeys(index for call in calls for index in self._used(call.arguments))
        writes = dict.fromkeys(index for call in calls for index in self._results(call))
        given = [index for index in reads if index not in writes or self._is_known(index)]
        return KernelStep(calls, self._program.values, given, list(writes))

    def _is_known(self, index: int) -> bool:
        """Whether a tensor has its bytes before anything writes it: in planned memory."""
        value = self._program.values[index]
        return isinstance(value, PteTensor) and value.place is not None

    def _used(self, places: Iterable[int]) -> Iterator[int]:
        """Return the tensors among arguments, those in lists too."""
        for place in places:
            match self._program.values[place]:
                case PteTensor():
                    yield place
                case Tensors(listed):
                    yield from (index for index in listed if index is not None)
                case _:
                    pass

    def _results(self, call: CallKernel) -> Iterator[int]:
        """Return the tensors that a kernel gives back, which are its last argument."""
        results = list(self._used(call.arguments[-1:]))
        if results:
            yield from results
        elif len(call.arguments) > 1:  # one that gives a list gives back nothing
            yield from self._used(call.arguments[-2:-1])

    def _quantize(self, call: CallKernel) -> QuantizeStep:
        tensors, numbers = self._taken_apart(call, QUANTIZE[call.kernel])
        source, result = tensors
        scale, zero_point, low, high = numbers
        dtype = self._tensor(result).dtype
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        if limits is None or not limits.min <= low <= high <= limits.max:
            raise self._wrong(f"{call.kernel} cannot give {low}..{high} in {dtype}")
        if call.kernel.startswith(CORTEX_M):
            scale = float(np.float32(scale))
        return QuantizeStep(source, result, scale, zero_point, low, high, dtype)

    def _dequantize(self, call: CallKernel) -> DequantizeStep:
        (source, result), (scale, zero_point, _, _) = self._taken_apart(
            call, DEQUANTIZE[call.kernel]
        )
        if self._tensor(result).dtype.kind != "f":
            raise self._wrong(f"{call.kernel} must give real numbers")
        return DequantizeStep(source, result, scale, zero_point)

    def _taken_apart(
        self, call: CallKernel, output: int
    ) -> tuple[tuple[int, int], tuple[float, int, int, int]]:
        """Return input and output, then scale, zero point and limits of a kernel."""
        values = [self._program.values[place] for place in call.arguments]
        if len(values) <= output - 1:
            raise self._wrong(f"{call.kernel} must have {output} arguments, not {len(values)}")
        scale, zero_point, low, high = values[1:5]
        source, result = call.arguments[0], call.arguments[output - 1]
        if not isinstance(scale, float) or not 0 < scale < math.inf:
            raise self._wrong(f"{call.kernel} must have a positive scale, not {scale}")
        if not isinstance(zero_point, int) or not isinstance(low, int) or not isinstance(high, int):
            raise self._wrong(f"{call.kernel} must have integers for zero point and limits")
        shapes = [self._tensor(index).stored_shape for index in (source, result)]
        if shapes[0] != shapes[1]:
            raise self._wrong(f"{call.kernel} cannot give {shapes[1]} from {shapes[0]}")
        return (source, result), (scale, zero_point, low, high)

    def _tensor(self, place: int) -> PteTensor:
        value = self._program.values[place]
        if not isinstance(value, PteTensor):
            raise self._wrong(f"value {place} must be a tensor")
        return value

    def _delegate(self, call: CallDelegate) -> DelegateStep:
        delegate = self._program.delegates[call.delegate]
        what = f"{self._name}: delegate {call.delegate}"
        if delegate.backend not in BACKENDS:
            raise fail(
                "E177",
                f"{what} must be one of {DELEGATE}, and is one of {delegate.backend}: Mizzen does "
                "not know what that computes",
                help=f"lower the program for an Ethos-U, or leave out the partitioner of "
                f"{delegate.backend}, so that its operators stay kernels",
            )
        content = vela_bin.read(delegate.payload, what, self._program.named)
        taken, count = len(content.inputs), len(call.arguments)
        if count != taken + len(content.outputs):
            given = len(content.outputs)
            raise self._wrong(f"{what} must have {taken} inputs and {given} outputs, not {count}")
        inputs, outputs = call.arguments[:taken], call.arguments[taken:]
        places = (*map(self._address, inputs, content.inputs),
                  *map(self._address, outputs, content.outputs))  # fmt: skip
        program = replace(
            program_of(content, places[:taken], places[taken:], self._name),
            origins=next(self._origins, UNKNOWN),
        )
        shapes = [self._tensor(index).stored_shape for index in outputs]
        return DelegateStep(CompiledPart(program, inputs, outputs), shapes)

    def _address(self, index: int, place: VelaTensor) -> TensorAddress:
        tensor = self._tensor(index)
        same = tensor.dtype.itemsize == place.element_bytes
        if not same or tensor.size_bytes != place.size_bytes:
            raise self._wrong(
                f"value {index} must have the {place.size_bytes} bytes that its delegate takes or "
                f"gives, in elements of {place.element_bytes}, and has {tensor.size_bytes} in "
                f"{tensor.dtype}"
            )
        if len(place.shape) < vela_bin.RANK:
            self._require_order(index, tensor, place)
        return TensorAddress(
            f"value_{index}", place.shape, tensor.dtype, place.region, place.offset_bytes
        )

    def _require_order(self, index: int, tensor: PteTensor, place: VelaTensor) -> None:
        """Refuse what the runtime of ExecuTorch before 1.0 may have put in another order: E527."""
        own, asked = ([extent for extent in shape if extent != 1]
                      for shape in (tensor.stored_shape, place.shape))  # fmt: skip
        if own != asked:
            raise fail(
                "E527",
                f"{self._name}: value {index} must have the shape that its delegate says, "
                f"{list(place.shape)}, and has {list(tensor.stored_shape)}: runtimes before "
                "ExecuTorch 1.0 may put it in another order, and the file does not say which",
                help="export the program again, with ExecuTorch 1.0 or later",
            )

    def _edge(self, places: Sequence[int], given: bool) -> tuple[list[OrderStep], tuple[int, ...]]:
        """Return the steps that put inputs or outputs in their dimensions' order, and these."""
        steps: list[OrderStep] = []
        edge: list[int] = []
        first = len(self._program.values) + (0 if given else len(self._program.inputs))
        for place, index in enumerate(places):
            order = self._tensor(index).dim_order
            if order == tuple(range(len(order))):
                edge.append(index)
                continue
            edge.append(first + place)
            back = tuple(np.argsort(order).tolist())
            step = (first + place, index, order) if given else (index, first + place, back)
            steps.append(OrderStep(*step))
        return steps, tuple(edge)

    def _arena(self, tensors: dict[int, PteTensor]) -> Arena:
        places = {
            index: Place(tensor.place.offset_bytes, tensor.stored_shape, tensor.dtype)
            for index, tensor in tensors.items()
            if tensor.place is not None
        }
        return Arena({Block.ARENA: self._program.memory_bytes, Block.FAST: 0}, places)

    def _carried(self, calls: Sequence[CallKernel | CallDelegate]) -> tuple[Carried, ...]:
        """Return the state: tensors that start with something, or are read first.

        What a program reads before it writes was left by the inference before, zeros at first.
        """
        kept: dict[int, Array] = {
            index: each.data
            for index, each in self._tensors().items()
            if each.data is not None and each.place is not None
        }
        written = _Written()
        for index in (*self._program.inputs, *kept):
            written.add(self._tensor(index))
        for call in calls:
            given = list(self._given(call))
            for index in given:
                tensor = self._tensor(index)
                if tensor.place is not None and not written.has(tensor):
                    kept[index] = np.zeros(tensor.stored_shape, tensor.dtype)
                    written.add(tensor)
            for index in self._made(call):
                written.add(self._tensor(index))
        return tuple(Carried(index, index, initial) for index, initial in kept.items())

    def _given(self, call: CallKernel | CallDelegate) -> Iterator[int]:
        made: set[int] = set() if isinstance(call, CallDelegate) else set(self._made(call))
        if isinstance(call, CallKernel) and call.kernel.endswith("_"):  # it reads what it changes
            made -= set(self._used(call.arguments[:1]))
        yield from (index for index in self._taken(call) if index not in made)

    def _taken(self, call: CallKernel | CallDelegate) -> Iterator[int]:
        if isinstance(call, CallKernel):
            yield from self._used(call.arguments)
            return
        yield from call.arguments[: self._inputs_of(call)]

    def _made(self, call: CallKernel | CallDelegate) -> Iterator[int]:
        if isinstance(call, CallKernel):
            yield from self._results(call)
            return
        yield from call.arguments[self._inputs_of(call) :]

    def _inputs_of(self, call: CallDelegate) -> int:
        payload = self._program.delegates[call.delegate].payload
        return len(vela_bin.read(payload, self._name, self._program.named).inputs)

    def _wrong(self, message: str) -> MizzenError:
        return fail("E181", f"{self._name}: {message}", help="export the program again")


class _Written:
    """Bytes of the planned memory that hold something."""

    def __init__(self) -> None:
        self._runs: list[tuple[int, int]] = []

    def add(self, tensor: PteTensor) -> None:
        """Say that a tensor has been written."""
        if tensor.place is not None:
            start = tensor.place.offset_bytes
            self._runs.append((start, start + tensor.size_bytes))

    def has(self, tensor: PteTensor) -> bool:
        """Whether all bytes of a tensor have been written."""
        assert tensor.place is not None, tensor
        at = tensor.place.offset_bytes
        end = at + tensor.size_bytes
        for start, stop in sorted(self._runs):
            if start > at:
                break
            at = max(at, stop)
        return at >= end


def _info(name: str, tensor: PteTensor) -> TensorInfo:
    return TensorInfo(name, tensor.shape, tensor.dtype, None)
