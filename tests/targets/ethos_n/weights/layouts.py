"""Hypothesis strategies of weights, and of how a pass takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation
from mizzen.targets.ethos_n.config import VARIANTS, Capabilities, capabilities_of
from mizzen.targets.ethos_n.weights.weight_encoding import EncodedWeights, encode
from mizzen.targets.ethos_n.weights.weight_format import WeightLayout
from mizzen.targets.ethos_n.weights.weight_streams import OutputScale

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


@dataclass(frozen=True)
class Drawn:
    """Arguments of the encoder."""

    weights: Array
    layout: WeightLayout
    zero_point: int
    bias: Array
    scale: OutputScale
    capabilities: Capabilities

    def encoded(self) -> EncodedWeights:
        return encode(
            self.weights,
            self.layout,
            zero_point=self.zero_point,
            bias=self.bias,
            scale=self.scale,
            capabilities=self.capabilities,
        )


@st.composite
def layouts(draw: st.DrawFn, capabilities: Capabilities) -> WeightLayout:
    """Any layout that the hardware can load."""
    stride = draw(st.sampled_from([1, 1, 2]))
    pads: dict[str, Any] = {"stride_y": stride, "stride_x": stride}
    pads |= {"pad_top": draw(st.integers(0, 4)), "pad_left": draw(st.integers(0, 4))}
    inputs, outputs = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    depth = capabilities.ogs * draw(st.integers(1, 3))
    match draw(st.sampled_from(["direct", "wide", "winograd", "parts", "depthwise", "fully"])):
        case "direct":
            return WeightLayout((rows, columns, inputs, outputs), depth, 4 * inputs, **pads)
        case "wide":
            shape = (rows + 7, columns, min(inputs, 20), outputs)
            return WeightLayout(shape, depth, 64)
        case "winograd":
            shape = (rows, columns, inputs, outputs)
            return WeightLayout(shape, depth, 64, algorithm=Algorithm.WINOGRAD)
        case "parts":
            taken = capabilities.igs * stride * stride * draw(st.integers(1, 2))
            shape = (min(rows, 3), min(columns, 3), inputs, outputs)
            return WeightLayout(shape, capabilities.ogs, taken, **pads)
        case "depthwise":
            shape = (rows, columns, inputs, draw(st.integers(1, 3)))
            depth = capabilities.srams * draw(st.integers(1, 3))
            return WeightLayout(shape, depth, 1, MceOperation.DEPTHWISE_CONVOLUTION, **pads)
        case _:
            shape = (1, 1, 1024 * draw(st.integers(1, 3)), min(outputs, 20))
            taken = 1024 * draw(st.integers(1, 3))
            return WeightLayout(shape, capabilities.ogs, taken, MceOperation.FULLY_CONNECTED)


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    """Any weights: from uniform to all the same, with any share of zeros."""
    capabilities = capabilities_of(draw(st.sampled_from(list(VARIANTS.values()))))
    layout = draw(layouts(capabilities))
    zero_point = draw(st.integers(-128, 127))
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    width = draw(st.sampled_from([0, 1, 2, 5, 20, 80]))
    middle = draw(st.sampled_from([zero_point, 0, 100]))
    weights = np.clip(np.round(random.normal(middle, width, layout.shape)), -128, 127)
    share = draw(st.sampled_from([0, 0.3, 0.8, 0.99, 1]))
    weights = np.where(random.random(layout.shape) < share, zero_point, weights)
    if draw(st.booleans()):
        weights[..., random.random(layout.shape[3]) < 0.5] = zero_point
    count = draw(st.sampled_from([1, layout.ofms]))
    return Drawn(
        weights.astype(np.int8),
        layout,
        zero_point,
        random.integers(-(1 << 31), 1 << 31, layout.ofms),
        OutputScale(
            tuple(random.integers(0, 1 << 16, count).tolist()),
            tuple(random.integers(0, 1 << 6, count).tolist()),
            draw(st.integers(-128, 255)),
        ),
        capabilities,
    )
