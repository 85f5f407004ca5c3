"""Small programs of a device, made by hand."""

from __future__ import annotations

import numpy as np

from mizzen.package.device import (
    DeviceProgram,
    DeviceTensor,
    KernelCall,
    NpuCall,
    State,
    TensorArgument,
    Transfer,
)

CONFIG, IDENTITY = 0x1807, 0x10066001
PAYLOAD = np.array(
    [0x31504F43, 0x01, CONFIG, IDENTITY, 5, 5, 5, 0x0001_0002, 0xFFFF_0000], "<u4"
).tobytes()
FLOAT, BYTE = np.dtype(np.float32), np.dtype(np.int8)


def quantizing() -> DeviceProgram:
    """Real numbers become integers, and real again; a state keeps those of the last inference."""
    tensors = (
        DeviceTensor("x", (2, 3), FLOAT),
        DeviceTensor("q", (2, 3), BYTE, (0.5,), (3,)),
        DeviceTensor("y", (2, 3), FLOAT),
        DeviceTensor("scale", (1,), FLOAT, data=np.array([2.0], np.float32)),
        DeviceTensor("back", (1,), FLOAT, data=np.array([0.5], np.float32)),
        DeviceTensor("point", (1,), np.dtype(np.int32), data=np.array([3], np.int32)),
        DeviceTensor("last", (2, 3), BYTE),
        DeviceTensor("before", (2, 3), FLOAT),
    )
    return DeviceProgram(
        name="quantizing",
        accelerator=None,
        tensors=tensors,
        inputs=(0,),
        outputs=(2, 7),
        calls=(
            _call("quantize", (0, 3, 5), (1, -128, 127, 0), 1),
            _call("dequantize", (1, 4, 5), (1, 0), 2),
            _call("dequantize", (6, 4, 5), (1, 0), 7),
        ),
        states=(State(6, 1, np.full((2, 3), 5, np.int8)),),
    )


def on_npu() -> DeviceProgram:
    """One call of an NPU whose tensors are copied, with a state and a fast memory."""
    tensors = (
        DeviceTensor("x", (1, 16), BYTE),
        DeviceTensor("y", (1, 16), BYTE),
        DeviceTensor("kept", (1, 16), BYTE),
    )
    call = NpuCall(
        payload=PAYLOAD,
        read_only=bytes(range(40)),
        scratch_bytes=96,
        scratch_offset_bytes=None,
        fast_bytes=32,
        inputs=(Transfer(0, 0),),
        outputs=(Transfer(1, 16),),
        states=(Transfer(2, 64),),
    )
    return DeviceProgram(
        name="on_npu",
        accelerator="ethos-u55-128",
        tensors=tensors,
        inputs=(0,),
        outputs=(1,),
        calls=(call,),
        states=(State(2, 2, np.arange(16, dtype=np.int8)[None]),),
    )


def _call(
    kernel: str, tensors: tuple[int, ...], numbers: tuple[int, ...], output: int
) -> KernelCall:
    given = [*map(TensorArgument, tensors), *numbers]
    return KernelCall(kernel, tuple((str(i), row) for i, row in enumerate(given)), (output,))
