"""Operators that stay on the CPU, executed by TensorFlow Lite Micro's kernels where it has them.

What an artifact leaves to the CPU runs on the kernels that would run on the device, so that the
result of the whole network is the device's. The kernels trust their network: one that is damaged
can end the process or loop. So they run in a worker process, which is started again after it ended
(`tflm`, and `tflm_process` within it); the caller gets E701 to E705 instead of a crash. What they
have no kernel for is computed otherwise (`host`): as integers in NumPy, or by LiteRT (`litert`).

A network comes as the bytes of a TFLite file; biases that the kernels would misread are put into
the type that they read (`mizzen.package.tflite.long_biases`). Nothing here knows an NPU, or which
part of which network it runs.
"""

from mizzen.cpu.tflm import CpuKernels, CpuSession, KernelMemory

__all__ = ["CpuKernels", "CpuSession", "KernelMemory"]
