"""Operators that stay on the CPU, executed by TFLite Micro's kernels."""

from mizzen.cpu.tflm import CpuKernels, CpuSession

__all__ = ["CpuKernels", "CpuSession"]
