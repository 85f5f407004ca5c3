"""Artifacts as programs of a device, from which its containers are written.

A step of the NPU becomes one call of its driver, a step of the processor one call of a kernel for
each operator in it: those of TFLite under their names there, those of PyTorch under the names of
core ATen, into which PyTorch takes its part of a program apart. State is the program's. What ONNX
Runtime computes no device has kernels for.

It decides nothing about containers: which kernels one has, and how it lays out memory, is said in
`mizzen.package`.
"""

from mizzen.artifact.device.flattening import Compiled, device_program
from mizzen.artifact.device.onnx_calls import no_kernels, without_kernels

__all__ = ["Compiled", "device_program", "no_kernels", "without_kernels"]
