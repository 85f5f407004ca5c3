"""Pooling: maximum and average over windows, adaptive pooling.

Ref: TOSA 1.0, 2.3.2 AVG_POOL2D, 2.3.9 MAX_POOL2D.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mizzen.frontends.torch.fp_lowering.fp_arithmetic import mul, number
from mizzen.frontends.torch.fp_lowering.fp_context import Call, Result, lowers
from mizzen.frontends.torch.fp_lowering.fp_shapes import channels_first, concat, image, slice_
from mizzen.frontends.torch.geometry import Pads, cuts_of, fit, regular_step, window_pair
from mizzen.graph import DType, Value
from mizzen.ops import Builder

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Window:
    """A window's size, steps and padding, and how many positions it has."""

    kernel: Pair
    stride: Pair
    pads: Pads
    counts: Pair

    @staticmethod
    def of(call: Call, spatial: int) -> _Window:
        """Take a node apart; `spatial` is 2, or 1 for one row."""
        row = spatial == 1
        kernel = window_pair(call["kernel_size"], row)
        stride = window_pair(call["stride"], row) if call["stride"] else kernel
        high, wide = window_pair(call["padding"], row, 0)
        dilation = window_pair(call.arguments.get("dilation", 1), row)
        call.need(dilation == (1, 1), "its window is dilated", "pool without dilation")
        shape = call.shapes[0]
        counts = (1, shape[-1]) if row else (shape[-2], shape[-1])
        return _Window(kernel, stride, (high, high, wide, wide), counts)

    def covering(self, source: Value) -> _Window:
        """Pad behind as far as the last window reaches (``ceil_mode``)."""
        pads = list(self.pads)
        for axis in (0, 1):
            needed = (self.counts[axis] - 1) * self.stride[axis] + self.kernel[axis]
            have = source.shape[1 + axis] + pads[2 * axis] + pads[2 * axis + 1]
            pads[2 * axis + 1] += max(needed - have, 0)
        return replace(self, pads=(pads[0], pads[1], pads[2], pads[3]))

    def attributes(self, b: Builder, source: Value) -> tuple[Value, dict[str, Any]]:
        """Return the part of the input that windows reach, and the operation's attributes."""
        source, pad = fit(b, source, self.kernel, self.stride, (1, 1), self.pads)
        return source, {"kernel": self.kernel, "stride": self.stride, "pad": pad}


@lowers(
    "aten.max_pool2d.default",
    "aten.max_pool1d.default",
    "aten.max_pool2d_with_indices.default",
)
def maximum(call: Call) -> Result:
    """Greatest of each window; where it was, TOSA does not say."""
    spatial = 1 if "1d" in call.node.target.__name__ else 2
    if call.gives_several:
        call.need(_used(call) <= {0}, "it gives indices", "use max_pool2d without return_indices")
    b, source = call.b, image(call.b, call.value("self"), spatial)
    source, attributes = _Window.of(call, spatial).covering(source).attributes(b, source)
    value = channels_first(b, b("MAX_POOL2D", source, **attributes), call.shapes[0])
    return (value,) if call.gives_several else value


@lowers("aten.avg_pool2d.default", "aten.avg_pool1d.default")
def average(call: Call) -> Value:
    """Mean of each window; padding counts only where the model says so."""
    spatial = 1 if "1d" in call.node.target.__name__ else 2
    b, source = call.b, image(call.b, call.value("self"), spatial)
    window = _Window.of(call, spatial)
    divisor = call.arguments.get("divisor_override")
    if divisor:
        window = window.covering(source)
    if (call["count_include_pad"] or divisor) and any(window.pads):
        source = _padded(b, source, window.pads)
        window = replace(window, pads=(0, 0, 0, 0))
    source, attributes = window.covering(source).attributes(b, source)
    value = _mean(b, source, attributes)
    if divisor:
        value = mul(b, value, window.kernel[0] * window.kernel[1] / int(divisor))
    return channels_first(b, value, call.shape)


@lowers(
    "aten.adaptive_avg_pool2d.default",
    "aten.adaptive_avg_pool1d.default",
    "aten._adaptive_avg_pool2d.default",
)
def adaptive_average(call: Call) -> Value:
    """Mean of windows that cut an image into a given number of rows and columns."""
    return _adaptive(call, _mean)


@lowers("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool1d.default")
def adaptive_maximum(call: Call) -> Result:
    """Greatest of windows that cut an image into a given number of rows and columns."""
    call.need(_used(call) <= {0}, "it gives indices", "pool without return_indices")
    return (_adaptive(call, lambda b, source, window: b("MAX_POOL2D", source, **window)),)


def _used(call: Call) -> set[int]:
    """Return which of several results are used."""
    return {int(user.args[1]) for user in call.node.users if user.users}


Pool = Callable[[Builder, Value, dict[str, Any]], Value]


def _adaptive(call: Call, pool: Pool) -> Value:
    spatial = 1 if "1d" in call.node.target.__name__ else 2
    b, source = call.b, image(call.b, call.value("self"), spatial)
    shape = call.shapes[0]
    rows = cuts_of(source.shape[1], 1 if spatial == 1 else shape[-2])
    columns = cuts_of(source.shape[2], shape[-1])
    return channels_first(b, _tiles(b, source, rows, columns, pool), shape)


def _tiles(b: Builder, source: Value, rows: list[Pair], columns: list[Pair], pool: Pool) -> Value:
    """Pool each tile; one operation where all tiles are of one size and in step."""
    row, column = regular_step(rows), regular_step(columns)
    if row and column:
        window = _Window((row[0], column[0]), (row[1], column[1]), (0, 0, 0, 0), (0, 0))
        return pool(b, *window.attributes(b, source))
    lines = [
        concat(b, [_tile(b, source, line, cut, pool) for cut in columns], axis=2) for line in rows
    ]
    return concat(b, lines, axis=1)


def _tile(b: Builder, source: Value, line: Pair, cut: Pair, pool: Pool) -> Value:
    part = slice_(b, source, 1, line[0], line[1] - line[0])
    part = slice_(b, part, 2, cut[0], cut[1] - cut[0])
    window = _Window((part.shape[1], part.shape[2]), (1, 1), (0, 0, 0, 0), (1, 1))
    return pool(b, *window.attributes(b, part))


def _mean(b: Builder, source: Value, window: dict[str, Any]) -> Value:
    zero = b.constant([0], source.dtype)
    return b("AVG_POOL2D", source, zero, zero, acc_type=DType.FP32, **window)


def _padded(b: Builder, source: Value, pads: Pads) -> Value:
    padding = b.shape([0, 0, *pads, 0, 0])
    return b("PAD", source, padding, number(b, 0.0, source.dtype, 1))
