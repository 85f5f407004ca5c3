"""The pattern table: what of a graph is one operation, or a few, of the Support Library.

Rows are in order of priority; a row is taken where its pattern matches and the library supports
what it becomes. Names are those of Apache TVM's Ethos-N integration.

Ref: Apache TVM v0.14.0, Ethos-N: pattern table and operators with `target.ethos-n`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mizzen.patterns import Match, Pattern
from mizzen.targets.ethos_n.patterns import (
    arithmetic,
    arrangement,
    conversion,
    functions,
    pooling,
    staged_pooling,
    weighted,
)
from mizzen.targets.ethos_n.patterns.emission import Emission

Add = Callable[[Emission, Match], None]
"""Adds what a match becomes to a network; UnfitError with all reasons if it cannot be."""

PREFIX = "ethos-n."
SPLIT = f"{PREFIX}split"
"""The composite that no row has: several SLICEs of one value."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of composite.

    add      adds it to a network
    ask      adds what the library is asked about, where that is something else
    becomes  the name of the composite that it is converted to; its own if it is not converted
    """

    pattern: Pattern
    add: Add
    ask: Add
    becomes: str

    @property
    def name(self) -> str:
        """The composite's name, such as ``ethos-n.qnn_conv2d``."""
        return self.pattern.name


def _row(pattern: Pattern, add: Add, *, ask: Add | None = None, becomes: str | None = None) -> Row:
    return Row(pattern, add, ask or add, becomes or pattern.name)


REINTERPRET = f"{PREFIX}qnn_reinterpret_quantize"
CONVOLUTION = f"{PREFIX}qnn_conv2d"
MAXIMUM = f"{PREFIX}nn.max_pool2d"

_CONVERSIONS, _FUNCTIONS = conversion.PATTERNS, functions.PATTERNS
_STAGED = staged_pooling.PATTERNS
_WEIGHTED, _POOLING, _MOVES = weighted.PATTERNS, pooling.PATTERNS, arrangement.PATTERNS

TABLE: tuple[Row, ...] = (
    _row(
        _CONVERSIONS["qnn_mul_to_reinterpret_quantize"],
        conversion.reinterpreted,
        becomes=REINTERPRET,
    ),
    _row(_CONVERSIONS["qnn_mul_to_depthwise"], conversion.multiplied, becomes=CONVOLUTION),
    _row(
        _CONVERSIONS["qnn_add_to_reinterpret_quantize"],
        conversion.reinterpreted,
        becomes=REINTERPRET,
    ),
    _row(_CONVERSIONS["qnn_add_to_depthwise"], conversion.added, becomes=CONVOLUTION),
    _row(arithmetic.PATTERNS["qnn_add"], arithmetic.addition),
    # A mean that keeps its input's steps; in others a convolution rounds only once.
    _row(_POOLING["qnn_mean"], pooling.mean_of_sums),
    _row(_POOLING["qnn_mean_to_depthwise"], pooling.convolved_mean, becomes=CONVOLUTION),
    _row(_POOLING["qnn_mean_requantized"], pooling.mean_of_sums),
    # Before convolutions, which the graph has for dense layers.
    _row(_WEIGHTED["qnn_fc"], weighted.dense),
    _row(_WEIGHTED["qnn_conv2d"], weighted.convolution),
    _row(_POOLING["qnn_mean_of_ones"], pooling.mean_of_ones),
    _row(_WEIGHTED["qnn_conv2d_transpose"], weighted.transposed),
    _row(_POOLING["qnn_avg_pool2d"], pooling.average),
    _row(_POOLING["qnn_avg_pool2d_to_depthwise"], pooling.average_of_ones, becomes=CONVOLUTION),
    _row(_STAGED["qnn_avg_pool2d_in_stages"], staged_pooling.staged_average, becomes=CONVOLUTION),
    _row(_FUNCTIONS["qnn_sigmoid"], functions.logistic),
    _row(_FUNCTIONS["qnn_tanh"], functions.hyperbolic_tangent),
    _row(_FUNCTIONS["qnn_leaky_relu"], functions.leaky),
    _row(_MOVES["qnn_resize"], arrangement.resized),
    _row(_FUNCTIONS["qnn_requantize"], functions.requantize),
    _row(_POOLING["max_pool2d"], pooling.maximum),
    _row(_STAGED["max_pool2d_padded"], staged_pooling.padded_maximum, becomes=MAXIMUM),
    _row(_MOVES["depth_to_space"], arrangement.spread),
    _row(_MOVES["reshape"], arrangement.reshaped, ask=arrangement.reshape_asked),
    _row(_MOVES["concatenate"], arrangement.joined),
    _row(_FUNCTIONS["clip"], functions.clip),
)

COMPUTE_INTENSIVE = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "qnn_conv2d",
        "qnn_conv2d_transpose",
        "qnn_avg_pool2d",
        "qnn_sigmoid",
        "qnn_fc",
        "qnn_mean",
        "qnn_resize",
        "nn.max_pool2d",
    )
)
"""Composites of which one makes a region worth its place on the NPU.

Ref: Apache TVM v0.14.0, Ethos-N: `IsComputeIntensivePartition`.
"""
