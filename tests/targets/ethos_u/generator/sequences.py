"""Small sequences by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    ChannelScales,
    Convolution,
    Elementwise,
    Kernel,
    Map,
    Operation,
    Pooling,
    Role,
    Scale,
    Sequence,
    Shape,
    Tensor,
)
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode, PoolingMode

INT8 = np.dtype(np.int8)
WHOLE_RANGE = Activation(-128, 127)


@dataclass(slots=True)
class Network:
    """Adds operations one by one; each method gives the tensor that it writes."""

    seed: int = 0
    tensors: list[Tensor] = field(default_factory=list[Tensor])
    operations: list[Operation] = field(default_factory=list[Operation])
    generator: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    def tensor(self, shape: Shape, role: Role = Role.SCRATCH, **more: Any) -> int:
        """Add a tensor, of int8 if `dtype` is not another."""
        dtype = more.pop("dtype", INT8)
        self.tensors.append(Tensor(f"t{len(self.tensors)}", shape, dtype, role, **more))
        return len(self.tensors) - 1

    def whole(self, tensor: int, zero_point: int = 0) -> Map:
        """Return a map of all of a tensor."""
        row = self.tensors[tensor]
        return Map(Box(tensor, row.shape), row.dtype, zero_point)

    def convolution(self, ifm: Map | int, channels: int, kernel: Kernel, **more: Any) -> int:
        """Add a convolution with weights and scales by chance."""
        ifm = self.whole(ifm, -5) if isinstance(ifm, int) else ifm
        depthwise = more.get("depthwise", False)
        inputs = 1 if depthwise else ifm.shape[2]
        shape = (channels, kernel.height, kernel.width, inputs)
        weights = self.generator.integers(-127, 128, shape).astype(np.int16)
        spread = np.sqrt(np.prod(shape[1:]))
        scales = ChannelScales(
            self.generator.integers(-4000, 4000, channels),
            self.generator.integers(1 << 30, 1 << 31, channels),
            np.full(channels, 38 + int(np.log2(spread))),
        )
        output = self.tensor((*_output(ifm.shape, kernel), channels))
        self.operations.append(
            Convolution(
                self._origin(), ifm, self.whole(output, 3), kernel, weights, scales,
                more.get("activation", WHOLE_RANGE), depthwise,
            )
        )  # fmt: skip
        return output

    def pool(self, ifm: Map | int, mode: PoolingMode, kernel: Kernel, **more: Any) -> int:
        """Add a pool; AVERAGE divides by the elements of a window."""
        ifm = self.whole(ifm, 3) if isinstance(ifm, int) else ifm
        count = kernel.height * kernel.width if mode is PoolingMode.AVERAGE else 1
        scale = more.get("scale", Scale(((1 << 31) + (1 << 1)) // count if count > 1 else 1,
                                        31 if count > 1 else 0))  # fmt: skip
        output = self.tensor((*_output(ifm.shape, kernel), ifm.shape[2]))
        self.operations.append(
            Pooling(
                self._origin(), mode, ifm, self.whole(output, more.get("zero_point", 3)), kernel,
                scale, more.get("activation", WHOLE_RANGE),
            )
        )  # fmt: skip
        return output

    def add(self, first: Map | int, second: Map | int, **more: Any) -> int:
        """Add an ADD of two maps of one scale."""
        a = self.whole(first, 3) if isinstance(first, int) else first
        b = self.whole(second, 3) if isinstance(second, int) else second
        shape = tuple(max(pair) for pair in zip(a.shape, b.shape, strict=True))
        output = self.tensor((shape[0], shape[1], shape[2]))
        self.operations.append(
            Elementwise(
                self._origin(), ElementwiseMode.ADD, a, b, self.whole(output, 3),
                more.get("activation", WHOLE_RANGE), scale=Scale(1 << 30, 46),
                scale_a=Scale(1 << 15, 0), scale_b=Scale(1 << 15, 0),
            )
        )  # fmt: skip
        return output

    def as_output(self, tensor: int) -> None:
        """Let the caller see a tensor."""
        self.tensors[tensor] = replace(self.tensors[tensor], role=Role.OUTPUT)

    def sequence(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Sequence:
        """Return what was added."""
        return Sequence(tuple(self.tensors), tuple(self.operations), inputs, outputs)

    def _origin(self) -> Origin:
        return Origin(operator=len(self.operations))


def _output(shape: Shape, kernel: Kernel) -> tuple[int, int]:
    height = shape[0] + kernel.pad_top + kernel.pad_bottom - kernel.dilated_height
    width = shape[1] + kernel.pad_left + kernel.pad_right - kernel.dilated_width
    return height // kernel.stride_y + 1, width // kernel.stride_x + 1
