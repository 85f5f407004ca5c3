"""Sequences by chance of operations most of which can hand on their results inside U85."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Bytes,
    Elementwise,
    Kernel,
    Map,
    OperandScale,
    Role,
    Scalar,
    Scale,
    Sequence,
    Shape,
    Table,
)
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode, PoolingMode

from .sequences import WHOLE_RANGE, Network

INT32 = np.dtype(np.int32)
SAME = Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)
TWO_OPERANDS = (
    ElementwiseMode.ADD, ElementwiseMode.SUB, ElementwiseMode.MUL, ElementwiseMode.MIN,
    ElementwiseMode.MAX,
)  # fmt: skip
HALF = OperandScale(1 << 30, 31)


def chainable(seed: int) -> Sequence:
    """Return a sequence over maps of one shape; each operation reads what came lately."""
    return _Maker.of(seed).made()


@dataclass(slots=True)
class _Maker:
    net: Network
    draw: np.random.Generator
    shape: Shape
    maps: list[Map]
    small: list[Map]

    @classmethod
    def of(cls, seed: int) -> _Maker:
        draw, net = np.random.default_rng(seed), Network(seed)
        height, width, depth = (int(draw.integers(1, most)) for most in (9, 14, 40))
        maker = cls(net, draw, (height, width, depth), [], [])
        maker.maps = [maker.given(maker.shape), maker.given(maker.shape)]
        maker.small = [maker.given((1, 1, depth)), maker.given((height, width, 1))]
        return maker

    def given(self, shape: Shape) -> Map:
        return self.net.whole(self.net.tensor(shape, Role.INPUT), int(self.draw.integers(-9, 9)))

    def made(self) -> Sequence:
        inputs = tuple(range(len(self.net.tensors)))
        for _ in range(int(self.draw.integers(3, 14))):
            self.maps.append(self.one())
        read = {
            map_.tensor
            for operation in self.net.operations
            for map_ in (getattr(operation, "ifm", None), getattr(operation, "ifm2", None))
            if isinstance(map_, Map)
        }
        outputs = tuple(
            map_.tensor for map_ in self.maps[2:] if map_.tensor not in read or self.chance(0.08)
        )
        for output in outputs:
            self.net.as_output(output)
        return self.net.sequence(inputs, outputs)

    def chance(self, share: float) -> bool:
        return bool(self.draw.random() < share)

    def lately(self) -> Map:
        """Return one of the last maps, most often the very last."""
        return self.maps[-1 - min(int(self.draw.geometric(0.6)) - 1, len(self.maps) - 1)]

    def one(self) -> Map:
        match int(self.draw.integers(0, 10)):
            case 0:
                kernel = SAME if self.chance(0.5) else Kernel()
                return self.net.whole(self.net.convolution(self.lately(), self.shape[2], kernel), 3)
            case 1:
                more = {"depthwise": True}
                return self.net.whole(
                    self.net.convolution(self.lately(), self.shape[2], SAME, **more), 3
                )
            case 2:
                return self.net.whole(self.net.pool(self.lately(), PoolingMode.MAX, SAME), 3)
            case 3 | 4:
                return self.carried()
            case 5:
                return self.through_words()
            case _:
                return self.combined()

    def activation(self) -> Activation:
        if self.chance(0.3):
            data = self.draw.integers(-128, 128, 256).astype(np.int8)
            return Activation(-128, 127, Table(data.tobytes()))
        return WHOLE_RANGE if self.chance(0.7) else Activation(-90, 60)

    def carried(self) -> Map:
        """Add a pool of one element, which scales and looks up."""
        scale = Scale(int(self.draw.integers(1 << 29, 1 << 31)), 30)
        mode = PoolingMode.AVERAGE if self.chance(0.8) else PoolingMode.MAX
        activation = self.activation()
        return self.net.whole(
            self.net.pool(self.lately(), mode, Kernel(), scale=scale, activation=activation), 3
        )

    def combined(self) -> Map:
        mode = TWO_OPERANDS[int(self.draw.integers(len(TWO_OPERANDS)))]
        first, ofm = self.lately(), self.net.whole(self.net.tensor(self.shape), 2)
        second = self.second(first)
        sums = mode in (ElementwiseMode.ADD, ElementwiseMode.SUB)
        if self.chance(0.2):
            first, second, ofm = map(self.in_one_row, (first, second, ofm))
        self.add(
            Elementwise(
                Origin(), mode, first, second, ofm, self.activation(),
                reversed=mode is ElementwiseMode.SUB and self.chance(0.5),
                scale=Scale(1 << 30, 36 if mode is ElementwiseMode.MUL else 30),
                operand_scales=(HALF, HALF) if sums else None,
            )
        )  # fmt: skip
        return self.net.whole(ofm.tensor, 2)

    def in_one_row(self, map_: Map | Scalar) -> Any:
        """Return a map with all its positions side by side."""
        if isinstance(map_, Scalar) or map_.shape[:2] == (1, 1):
            return map_
        height, width, depth = map_.shape
        strides = height * width * depth, depth, 1
        return replace(map_, view=Bytes(map_.tensor, (1, height * width, depth), 0, strides))

    def second(self, first: Map) -> Map | Scalar:
        if self.chance(0.25):
            return Scalar(int(self.draw.integers(-20, 20)), first.dtype, 2)
        if self.chance(0.25):
            return self.small[int(self.draw.integers(2))]
        return self.lately()

    def through_words(self) -> Map:
        """Add a product of 32 bits, a sum of them, and what comes back to 8."""
        product, total = (
            self.net.whole(self.net.tensor(self.shape, dtype=INT32)) for _ in range(2)
        )
        ofm = self.net.whole(self.net.tensor(self.shape), -4)
        wide = Activation(-(1 << 15), (1 << 15) - 1)
        unit = Scale(1, 0)
        one = OperandScale(1, 0)
        product_ = Elementwise(
            Origin(), ElementwiseMode.MUL, self.lately(), self.lately(), product, wide, scale=unit
        )
        sum_ = Elementwise(
            Origin(), ElementwiseMode.ADD, product, Scalar(1234, INT32), total, wide,
            scale=unit, operand_scales=(one, one),
        )  # fmt: skip
        back = Elementwise(
            Origin(), ElementwiseMode.SUB, total, Scalar(-55, INT32), ofm, self.activation(),
            scale=Scale(1 << 30, 38), operand_scales=(one, one),
        )  # fmt: skip
        for operation in (product_, sum_, back):
            self.add(operation)
        return ofm

    def add(self, operation: Elementwise) -> None:
        origin = Origin(operator=len(self.net.operations))
        self.net.operations.append(replace(operation, origin=origin))
