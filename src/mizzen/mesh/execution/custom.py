"""CUSTOM operations in tiles: operators of TFLite, on the host's kernels.

Such an operation carries the network of its operator (`mizzen.mesh.network.kernels`); nothing else
is needed to compute it, wherever its element is executed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.cpu.host import HostKernels
from mizzen.diagnostics import fail
from mizzen.graph import Array, Operation, other_sign
from mizzen.mesh.network.kernels import Carried, carried
from mizzen.ops.control_flow import Custom
from mizzen.reference import CustomKernel


def custom_kernel() -> CustomKernel:
    """Return the kernel of CUSTOM operations of several inferences at once."""
    return _Kernels()


class _Kernels:
    def __init__(self) -> None:
        self._loaded: dict[bytes, tuple[Carried, HostKernels]] = {}

    def __call__(self, operation: Operation, operands: Sequence[Array]) -> list[Array]:
        """Compute an operation of operands `[count, *shape]`. E533 if it carries no network."""
        part, kernels = self._load(operation)
        given = [
            other_sign(operands[place]) if is_unsigned else operands[place]
            for place, is_unsigned in part.inputs
        ]
        made = kernels.run(given, len(operands[0]))
        arrays: dict[int, Array] = {
            place: other_sign(array) if is_unsigned else array
            for (place, is_unsigned), array in zip(part.outputs, made, strict=True)
        }
        return [
            arrays[place].reshape(len(operands[0]), *value.shape)
            if place in arrays
            else np.zeros((len(operands[0]), *value.shape), value.dtype.numpy)
            for place, value in enumerate(operation.results)
        ]

    def _load(self, operation: Operation) -> tuple[Carried, HostKernels]:
        assert isinstance(operation, Custom)
        key = operation.implementation_attrs
        if key not in self._loaded:
            part = carried(operation)
            if part is None:
                raise fail(
                    "E533",
                    f"{operation.operator_name} must carry a network for TFLite Micro's kernels",
                    origin=operation.origin,
                    help="nothing else computes operations that are not TOSA's",
                )
            origins = [] if operation.origin is None else [operation.origin]
            self._loaded[key] = part, HostKernels(part.network, origins)
        return self._loaded[key]
