"""What a device loads of an artifact, taken apart: streams, tables, constants, what is needed.

A TFLite network, and what Mizzen keeps itself, is the program that Mizzen's runtimes execute; an
ExecuTorch program is what ExecuTorch's runtime reads. Tables are lines of text, one for each row: a
difference can be told by them. What an artifact says of itself besides is in none of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.device import device_program
from mizzen.artifact.interface import TensorInfo
from mizzen.artifact.saving import own_ending
from mizzen.flatbuffer.pte import ENDING
from mizzen.package.device import DeviceProgram, DeviceTensor, KernelCall, NpuCall
from mizzen.package.device.memory import plan
from mizzen.package.executorch import reading, vela_bin
from mizzen.package.executorch.reading import (
    CallDelegate,
    CallKernel,
    Delegate,
    Instruction,
    PteProgram,
    PteTensor,
    Value,
)
from mizzen.package.executorch.vela_bin import BACKENDS
from mizzen.report.words import short_name


@dataclass(frozen=True, slots=True)
class Loads:
    """What a device loads.

    form       how the file ends that a runtime opens
    streams    the driver's payloads, by whose they are
    tables     all else that is not contents: tensors, calls, places
    constants  contents that are only read, by what they are
    constants_of  contents by the model's operator that reads them, on the processor
    arena_bytes, fast_bytes  that a runtime must have
    kernels    of the processor, which firmware must have
    """

    form: str
    streams: Mapping[str, bytes]
    tables: tuple[str, ...]
    constants: Mapping[str, bytes]
    arena_bytes: int
    fast_bytes: int
    kernels: frozenset[str]
    constants_of: Mapping[int, bytes] = field(default_factory=dict[int, bytes])


def loads_of(artifact: Artifact) -> Loads:
    """Take an artifact apart.

    Raises E45x and E196 for one that no microcontroller executes as a sequence of calls.
    """
    form = own_ending(artifact.data)
    if form == ENDING:
        return _of_executorch(reading.read(artifact.data, artifact.name), artifact.name)
    return _of_device(device_program(artifact), form)


def interface_changes(before: Artifact, now: Artifact) -> tuple[list[str], list[str]]:
    """Return what firmware relies on and that changed, and what of scales did."""
    breaking: list[str] = []
    scales: list[str] = []
    for word in ("input", "output"):
        ours: Sequence[TensorInfo] = getattr(before, f"{word}s")
        theirs: Sequence[TensorInfo] = getattr(now, f"{word}s")
        if len(ours) != len(theirs):
            breaking.append(f"{len(theirs)} {word}s instead of {len(ours)}")
            continue
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            breaking += _of_tensor(f"{word} {place} {one.name}", one, other)
            scales += _of_scales(f"{word} {place} {one.name}", one, other)
    return breaking, scales


def _of_tensor(what: str, one: TensorInfo, other: TensorInfo) -> Iterator[str]:
    if one.name != other.name:
        yield f"{what} is called {other.name}"
    if one.shape != other.shape:
        yield f"{what} has shape {list(other.shape)} instead of {list(one.shape)}"
    if one.dtype != other.dtype:
        yield f"{what} is {other.dtype} instead of {one.dtype}"


def _of_scales(what: str, one: TensorInfo, other: TensorInfo) -> Iterator[str]:
    said = [_scale(each) for each in (one, other)]
    if said[0] != said[1]:
        yield f"{what} has {said[1]} instead of {said[0]}"


def _scale(info: TensorInfo) -> str:
    held = info.quantization
    if held is None or not held.scale:
        return "no scale"
    scales = ", ".join(f"{scale:.9g}" for scale in held.scale)
    return f"scale {scales}, zero point {', '.join(map(str, held.zero_point)) or 0}"


def _of_device(program: DeviceProgram, form: str) -> Loads:
    npu = [call for call in program.calls if isinstance(call, NpuCall)]
    kernels = [call for call in program.calls if isinstance(call, KernelCall)]
    return Loads(
        form,
        {f"NPU operator {place}": call.payload for place, call in enumerate(npu)},
        tuple(_device_rows(program)),
        {f"NPU operator {place}": call.read_only for place, call in enumerate(npu)}
        | {_name(tensor, place): _contents(tensor) for place, tensor in _constant(program)}
        | {
            f"state {program.tensors[state.read].name}": state.initial.tobytes()
            for state in program.states
        },
        plan(program).arena_bytes,
        max((call.fast_bytes or 0 for call in npu), default=0),
        frozenset(call.operator for call in kernels),
        dict(_by_operator(program, kernels)),
    )


def _name(tensor: DeviceTensor, place: int) -> str:
    return f"tensor {place} {short_name(tensor.name)}"


def _constant(program: DeviceProgram) -> Iterator[tuple[int, DeviceTensor]]:
    for place, tensor in enumerate(program.tensors):
        if tensor.data is not None:
            yield place, tensor


def _contents(tensor: DeviceTensor) -> bytes:
    return b"" if tensor.data is None else tensor.data.tobytes()


def _by_operator(
    program: DeviceProgram, kernels: Sequence[KernelCall]
) -> Iterator[tuple[int, bytes]]:
    for call in kernels:
        if call.origin is not None and call.origin.operator is not None:
            yield call.origin.operator, b"".join(_contents(program.tensors[i]) for i in call.reads)


def _device_rows(program: DeviceProgram) -> Iterator[str]:
    for place, tensor in enumerate(program.tensors):
        constant = " constant" if tensor.data is not None else f" at {tensor.offset_bytes}"
        scales = f" scales {tensor.scales} {tensor.zero_points}" if tensor.scales else ""
        yield f"tensor {place}: {tensor.dtype}{list(tensor.shape)}{scales}{constant}"
    for call in program.calls:
        if isinstance(call, NpuCall):
            yield (
                f"NPU call: {call.inputs} {call.outputs} {call.states} memory {call.scratch_bytes} "
                f"at {call.scratch_offset_bytes} fast {call.fast_bytes}"
            )
        else:
            yield f"kernel {call.operator}: {call.arguments} -> {call.outputs}"
    yield f"states {[(state.read, state.write) for state in program.states]}"
    yield f"interface {program.inputs} -> {program.outputs}"


def _of_executorch(program: PteProgram, name: str) -> Loads:
    delegates = {
        f"NPU operator {place}": vela_bin.read(delegate.payload, name, program.named)
        for place, delegate in enumerate(program.delegates)
        if delegate.backend in BACKENDS
    }
    tensors = {
        f"value {place} {value.name}".rstrip(): value.data.tobytes()
        for place, value in enumerate(program.values)
        if isinstance(value, PteTensor) and value.data is not None
    }
    called = [each.kernel for each in program.instructions if isinstance(each, CallKernel)]
    rows = [f"value {place}: {_value_row(value)}" for place, value in enumerate(program.values)]
    rows += [_instruction_row(each) for each in program.instructions]
    rows += [
        f"delegate {place}: {_delegate_row(delegate)}"
        for place, delegate in enumerate(program.delegates)
    ]
    rows += [
        f"{whose}: memory {held.scratch_bytes} {held.inputs} {held.outputs}"
        for whose, held in delegates.items()
    ]
    return Loads(
        ENDING,
        {whose: held.commands for whose, held in delegates.items()},
        (*rows, f"interface {program.inputs} -> {program.outputs}"),
        {whose: held.weights for whose, held in delegates.items()} | tensors,
        program.memory_bytes + max((held.scratch_bytes for held in delegates.values()), default=0),
        0,
        frozenset(called),
    )


def _value_row(value: Value) -> str:
    if not isinstance(value, PteTensor):
        return repr(value)
    constant = "constant" if value.is_constant else ""
    return f"{value.dtype}{list(value.shape)} {value.dim_order} {value.place} {constant}"


def _instruction_row(instruction: Instruction) -> str:
    match instruction:
        case CallKernel(kernel, arguments):
            return f"kernel {kernel}: {arguments}"
        case CallDelegate(delegate, arguments):
            return f"delegate {delegate}: {arguments}"
        case _:
            return repr(instruction)


def _delegate_row(delegate: Delegate) -> str:
    return f"{delegate.backend} {dict(delegate.options)}"
