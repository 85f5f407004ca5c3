"""NPU operators of an artifact: what the compiler put into one, and where its tensors lie.

Inputs of an operator are the driver payload, the read-only data, the scratch memory, the fast
scratch memory, then its real inputs and state; the real ones lie inside the scratch memory, where
the network's metadata says.

Ref: Vela 5.2, `tflite_writer.py`; TFLite Micro, `ethosu.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail
from mizzen.frontends.tflite.model import ABSENT, Model, Operator, Tensor

CODE = "ethos-u"
"""The custom operator's code."""

CONTAINER_CODE = "ethos-n"
"""That of an operator whose container has everything that the NPU needs."""

CODES = frozenset({CODE, CONTAINER_CODE})

ALLOCATION = "OfflineMemoryAllocation"
"""The metadata that says where tensors lie: int32 ``[version, subgraph, count, offsets...]``."""

NOT_IN_ARENA = -1
MEMORY_INPUTS = 4
"""Inputs before the real ones."""

_PAYLOAD, _READ_ONLY, _SCRATCH, _SCRATCH_FAST = range(4)
_RULE = "Vela 5.2, tflite_writer.py"


@dataclass(frozen=True, slots=True, eq=False)
class NpuTensor:
    """A real input or output, and its byte offset from the scratch memory's start."""

    tensor: Tensor
    offset_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class NpuOperator:
    """An NPU operator's parts; `scratch_fast_bytes` is None where it shares the scratch memory."""

    payload: npt.NDArray[np.uint8]
    read_only: npt.NDArray[np.uint8]
    scratch_bytes: int
    scratch_fast_bytes: int | None
    inputs: tuple[NpuTensor, ...]
    outputs: tuple[NpuTensor, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ContainerOperator:
    """An NPU operator's container, the NPU's capabilities, and its real inputs and outputs."""

    container: npt.NDArray[np.uint8]
    capabilities: npt.NDArray[np.uint8]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def is_npu(operator: Operator) -> bool:
    """Whether an operator is one for the NPU."""
    return operator.custom and operator.kind in CODES


def has_memory(operator: Operator) -> bool:
    """Whether an operator is one for the NPU that takes its memory as inputs."""
    return operator.custom and operator.kind == CODE


def container_operator(model: Model, operator: Operator) -> ContainerOperator:
    """Take an NPU operator of the main subgraph apart that has a container. E120 if it has none."""
    inputs = model.main.present(operator.inputs)
    container, capabilities = (inputs[0].data, inputs[1].data) if len(inputs) > 1 else (None, None)
    if container is None or capabilities is None:
        message = "an NPU operator's first two inputs must be constants: container, capabilities"
        raise _wrong(model, operator, "E120", message)
    outputs = model.main.present(operator.outputs)
    return ContainerOperator(container, capabilities, inputs[2:], outputs)


def npu_operator(model: Model, operator: Operator) -> NpuOperator:
    """Take an NPU operator of the main subgraph apart.

    E120 for an operator of another form, E121 where the network does not say, or not correctly,
    where tensors lie.
    """
    if len(operator.inputs) < MEMORY_INPUTS or ABSENT in operator.inputs:
        message = f"an NPU operator must have {MEMORY_INPUTS} inputs and its real ones, not"
        raise _wrong(model, operator, "E120", f"{message} {list(operator.inputs)}")
    inputs = model.main.present(operator.inputs)
    payload = inputs[_PAYLOAD].data
    if payload is None:
        raise _wrong(model, operator, "E120", "an NPU operator's payload must be a constant")
    read_only = inputs[_READ_ONLY].data
    separate = operator.inputs[_SCRATCH_FAST] != operator.inputs[_SCRATCH]
    return NpuOperator(
        payload=payload,
        read_only=np.zeros(0, np.uint8) if read_only is None else read_only,
        scratch_bytes=inputs[_SCRATCH].size_bytes or 0,
        scratch_fast_bytes=inputs[_SCRATCH_FAST].size_bytes or 0 if separate else None,
        inputs=_places(model, operator, inputs[MEMORY_INPUTS:]),
        outputs=_places(model, operator, model.main.present(operator.outputs)),
    )


def _places(model: Model, operator: Operator, tensors: tuple[Tensor, ...]) -> tuple[NpuTensor, ...]:
    offsets = _offsets(model, operator)
    start = offsets[operator.inputs[_SCRATCH]]
    found: list[NpuTensor] = []
    for tensor in tensors:
        offset = offsets[tensor.index]
        if NOT_IN_ARENA in (offset, start) or offset < start:
            raise _wrong(
                model,
                operator,
                "E121",
                f'tensor {tensor.index} "{tensor.name}" must lie behind the start of the scratch '
                f"memory, but {ALLOCATION} gives {offset} and {start}",
            )
        found.append(NpuTensor(tensor, offset - start))
    return tuple(found)


def _offsets(model: Model, operator: Operator) -> list[int]:
    count = len(model.main.tensors)
    contents = model.metadata.get(ALLOCATION)
    if contents is None:
        message = f"an artifact must have metadata {ALLOCATION}, and has none"
        raise _wrong(model, operator, "E121", message)
    words = contents[: contents.nbytes // 4 * 4].view("<i4").tolist()
    if words[2:3] != [count] or len(words) != count + 3:
        message = f"{ALLOCATION} must have an offset for each of {count} tensors"
        raise _wrong(model, operator, "E121", f"{message}, and has {max(0, len(words) - 3)}")
    return words[3:]


def _wrong(model: Model, operator: Operator, code: str, message: str) -> MizzenError:
    return fail(code, message, origin=model.origin(operator), rule=_RULE,
                help="the artifact is damaged; compile it again")  # fmt: skip
