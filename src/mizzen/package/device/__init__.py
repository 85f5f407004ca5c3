"""Programs of a device: what its processor and its NPU do, call after call, over planned memory.

Every container that a device loads (ExecuTorch's `.pte`, the C runtime's own) is written from the
same `DeviceProgram`: tensors with their places, calls of the NPU's driver and of kernels of the
processor in order, states that outlive an inference. What makes one of an artifact is
`mizzen.artifact`; which kernels a container has is the container's own to say.

It must not know artifacts, frameworks or NPUs: payloads are bytes, kernels are names.
"""

from mizzen.package.device.program import (
    Argument,
    DeviceProgram,
    DeviceTensor,
    KernelCall,
    NpuCall,
    Number,
    State,
    TensorArgument,
    TensorsArgument,
    Transfer,
)

__all__ = [
    "Argument",
    "DeviceProgram",
    "DeviceTensor",
    "KernelCall",
    "NpuCall",
    "Number",
    "State",
    "TensorArgument",
    "TensorsArgument",
    "Transfer",
]
