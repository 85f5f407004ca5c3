"""The steps of an artifact, one after the other, as calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mizzen.artifact.arena import Block
from mizzen.artifact.control_step import ControlStep
from mizzen.artifact.device.onnx_calls import (
    no_kernels,
    onnx_calls,
    without_kernels,
)
from mizzen.artifact.device.tensors import Tensors
from mizzen.artifact.device.tflite_calls import TfliteCalls
from mizzen.artifact.host_steps import (
    DequantizeStep,
    NarrowStep,
    OrderStep,
    QuantizeStep,
    TorchStep,
    WidenStep,
)
from mizzen.artifact.kernel_step import KernelStep
from mizzen.artifact.onnx_steps import DivideStep, OrtStep, SignStep
from mizzen.artifact.region_step import RegionStep
from mizzen.artifact.resources import VariableStep
from mizzen.artifact.steps import CpuStep, NpuStep, read_network
from mizzen.diagnostics import fail
from mizzen.package.device import (
    DeviceProgram,
    KernelCall,
    NpuCall,
    State,
    TensorArgument,
    Transfer,
)
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex, TensorAddress
from mizzen.targets.ethos_u.machine.relocation import in_scratch

if TYPE_CHECKING:
    from mizzen.artifact.execution import Contents
    from mizzen.artifact.steps import Step
    from mizzen.diagnostics import Diagnostic
    from mizzen.report.manifest import Manifest

QUANTIZE = "quantized_decomposed::quantize_per_tensor"
DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor"
CONVERT = "aten::_to_copy"
INDEX = "mizzen::narrow_index"
"""Of 64 bits to 32, for tables of `size` rows: counted from the end where `counts_back` and it is
below zero; an index that there is not is an error."""


class Compiled(Protocol):
    """What an artifact says of itself."""

    @property
    def data(self) -> bytes:
        """The file."""
        ...

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def contents(self) -> Contents:
        """What it holds."""
        ...

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is executed, in order."""
        ...

    @property
    def manifest(self) -> Manifest | None:
        """What its file says of itself."""
        ...

    @property
    def doubts(self) -> tuple[Diagnostic, ...]:
        """Why its file may not be what was written."""
        ...

    @property
    def accelerator(self) -> str | None:
        """The configuration that NPU operators are for."""
        ...


def device_program(artifact: Compiled) -> DeviceProgram:
    """Return the program that a device executes for an artifact.

    E450 for an accelerator that no driver of a microcontroller serves, E452 for control
    flow or state that is no sequence of calls, E453 where PyTorch cannot take its part apart, E196
    for operators that only ONNX Runtime computes.
    """
    _require_microcontroller(artifact)
    _require_one_sequence(artifact)
    missing = without_kernels(artifact.steps)
    if missing:
        raise no_kernels(artifact.name, missing)
    return _Flattening(artifact).program()


def _require_microcontroller(artifact: Compiled) -> None:
    accelerator = artifact.accelerator
    if accelerator is not None and not accelerator.startswith("ethos-u"):
        raise fail(
            "E450",
            f"an artifact for a microcontroller must be for an Ethos-U, not for {accelerator}",
            help="an Ethos-N is served by the driver of a Linux system; `mizzen run` executes it "
            "on the host",
        )


def _require_one_sequence(artifact: Compiled) -> None:
    """Refuse a network of several subgraphs: what a device executes is one list of calls."""
    signatures = ", ".join(signature.name for signature in artifact.contents.signatures)
    control = [step for step in artifact.steps if isinstance(step, ControlStep)]
    if artifact.contents.others or control:
        loops = ", ".join(dict.fromkeys(kind for step in control for kind in step.kinds))
        what = f"signatures {signatures}" if signatures else loops or "further subgraphs"
        raise fail(
            "E452",
            f"a device executes calls one after the other, and {artifact.name} has {what}",
            origin=control[0].origins[0] if control else None,
            help="make a network of each subgraph, and choose between them in the firmware; "
            "`mizzen export --to tflm` takes the network as it is",
        )


class _Flattening:
    def __init__(self, artifact: Compiled) -> None:
        self.artifact = artifact
        self.contents: Contents = artifact.contents
        self.network = (
            read_network(artifact.data, artifact.name)
            if any(self._is_told_by_the_network(step) for step in artifact.steps)
            else None
        )
        self.tensors = Tensors(self.contents, self.network)
        self.operators = None if self.network is None else TfliteCalls(self.network, self.tensors)

    def _is_told_by_the_network(self, step: Step) -> bool:
        """Whether only the network says what a step is, or the state that it keeps."""
        if isinstance(step, NpuStep):
            return any(variable.index not in self.contents.infos for variable in step.variables)
        return isinstance(step, CpuStep | VariableStep)

    def program(self) -> DeviceProgram:
        """Return the whole of it."""
        calls = [call for step in self.contents.steps for call in self._calls(step)]
        carried = self._states(calls)
        inputs = tuple(self.tensors.number(index) for index in self.contents.inputs)
        outputs = tuple(self.tensors.number(index) for index in self.contents.outputs)
        return DeviceProgram(
            name=self.artifact.name,
            accelerator=self.artifact.accelerator,
            tensors=self.tensors.rows,
            inputs=inputs,
            outputs=outputs,
            calls=tuple(calls),
            states=carried,
            arena_bytes=self.tensors.arena_bytes,
        )

    def _states(self, calls: Sequence[NpuCall | KernelCall]) -> tuple[State, ...]:
        kept = [] if self.operators is None else self.operators.states
        own = {state.read for state in kept}
        carried = [
            State(self.tensors.number(state.read), self.tensors.number(state.write), state.initial)
            for state in self.contents.carried
            if self.operators is None
        ]
        initial = {
            self.tensors.number(variable.index): variable.start(1)[0]
            for step in self.contents.steps
            if isinstance(step, NpuStep)
            for variable in step.variables
        }
        used = {
            transfer.tensor
            for call in calls
            if isinstance(call, NpuCall)
            for transfer in call.states
        }
        inside = [State(index, index, initial[index]) for index in sorted(used - own)]
        return (*kept, *carried, *inside)

    def _calls(self, step: Step) -> Iterator[NpuCall | KernelCall]:
        number = self.tensors.number
        match step:
            case NpuStep():
                yield self._npu(step)
            case QuantizeStep():
                numbers = (
                    ("scale", step.scale),
                    ("zero_point", step.zero_point),
                    ("quant_min", step.low),
                    ("quant_max", step.high),
                    ("dtype", step.dtype.name),
                )
                source = ("input", TensorArgument(number(step.input)))
                yield KernelCall(QUANTIZE, (source, *numbers), (number(step.output),))
            case DequantizeStep():
                yield self._dequantize(step)
            case DivideStep() | SignStep() | OrtStep():
                yield from onnx_calls(step, self.tensors)
            case NarrowStep() | WidenStep():
                yield self._convert(step)
            case TorchStep():
                from mizzen.artifact.device.torch_calls import torch_calls

                yield from torch_calls(step, self.tensors, self.artifact.name)
            case KernelStep() | OrderStep():
                raise fail(
                    "E183",
                    "an artifact must be what Mizzen compiled, to be written for a device, and "
                    f"{self.artifact.name} is an ExecuTorch program, which a device executes as it "
                    "is",
                    help="compile the network again, from the PyTorch program",
                )
            case ControlStep():
                raise AssertionError("a network of one sequence has none")
            case CpuStep() | VariableStep():
                assert self.operators is not None, "the network has been read for these steps"
                yield from self.operators.calls(step.operators)

    def _dequantize(self, step: DequantizeStep) -> KernelCall:
        source = self.tensors.number(step.input)
        dtype = self.tensors.rows[source].dtype
        limits = np.iinfo(dtype)
        arguments = (
            ("input", TensorArgument(source)),
            ("scale", step.scale),
            ("zero_point", step.zero_point),
            ("quant_min", limits.min),
            ("quant_max", limits.max),
            ("dtype", dtype.name),
            ("out_dtype", None),
        )
        return KernelCall(DEQUANTIZE, arguments, (self.tensors.number(step.output),))

    def _convert(self, step: NarrowStep | WidenStep) -> KernelCall:
        output = self.tensors.number(step.output)
        source = ("self", TensorArgument(self.tensors.number(step.input)))
        if isinstance(step, NarrowStep) and step.size is not None:
            bounds = ("size", step.size), ("counts_back", step.counts_back)
            return KernelCall(INDEX, (source, *bounds), (output,))
        arguments = (source, ("dtype", self.tensors.rows[output].dtype.name))
        return KernelCall(CONVERT, arguments, (output,))

    def _npu(self, step: NpuStep) -> NpuCall:
        if not isinstance(step.program, Program):
            raise AssertionError(step.program)
        program = in_scratch(step.program)
        if isinstance(step, RegionStep):
            assert not step.moves, "no region of an Ethos-U moves its tensors on the processor"
        shared = step.part.shared.get(RegionIndex.SCRATCH)
        scratch = shared.offset_bytes if shared and shared.block is Block.ARENA else None
        given = [tensor for tensor in program.inputs if not tensor.variable]
        kept = [tensor for tensor in program.inputs if tensor.variable]
        if scratch is not None:
            states = [variable.index for variable in step.variables]
            indices = (*self._without_state(step), *step.outputs, *states)
            tensors = (*given, *program.outputs, *kept)
            self.tensors.fix(indices, [scratch + tensor.offset for tensor in tensors], tensors)
            self.tensors.reach(scratch + program.region_bytes[RegionIndex.SCRATCH])
        read_only = program.constants.get(RegionIndex.READ_ONLY)
        return NpuCall(
            payload=driver.build(program.words, program.hardware),
            read_only=b"" if read_only is None else read_only.tobytes(),
            scratch_bytes=program.region_bytes.get(RegionIndex.SCRATCH, 0),
            scratch_offset_bytes=scratch,
            fast_bytes=program.region_bytes.get(RegionIndex.SCRATCH_FAST) or None,
            inputs=self._transfers(self._without_state(step), given),
            outputs=self._transfers(step.outputs, program.outputs),
            states=self._transfers([variable.index for variable in step.variables], kept),
        )

    def _without_state(self, step: NpuStep) -> list[int]:
        kept = {variable.index for variable in step.variables}
        return [index for index in step.inputs if index not in kept]

    def _transfers(
        self, indices: Sequence[int], places: Sequence[TensorAddress]
    ) -> tuple[Transfer, ...]:
        return tuple(
            Transfer(self.tensors.number(index), place.offset)
            for index, place in zip(indices, places, strict=True)
        )
