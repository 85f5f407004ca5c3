"""Operators on each number: functions, arithmetic, comparisons, choices."""

from __future__ import annotations

from mizzen.frontends.torch.operators.row import (
    SIGNED_UNIT,
    UNIT,
    Missing,
    Operator,
    Role,
    each,
    missing,
    row,
)

DECOMPOSED = Missing(
    "it has no integers in one step, and was not taken apart before calibration",
    "quantise with EthosUQuantizer, which does so where it can",
)

TABLE = "elementwise:unary"
"""A function of each number that has nothing to choose."""

NO_ARC = missing("TOSA has no inverse of a trigonometric or hyperbolic function")
NO_ROUNDED_QUOTIENT = missing("a quotient is rounded before it is cut, so wholes may be one off")
NO_REMAINDER = missing("a remainder is of the exact quotient, which TOSA does not have")
INTEGER_TRUTHS = missing("integers have no quantised form")

ELEMENTWISE: tuple[Operator, ...] = (
    # Functions of each number: an integer's is a table.
    *each(
        """silu hardswish mish log_sigmoid exp expm1|special_expm1 log log2 log10
        log1p|special_log1p sqrt rsqrt reciprocal square tan sinh cosh
        exp2|special_exp2 erfc|special_erfc""",
        Role.COMPUTED,
        integers=TABLE,
        floats=TABLE,
    ),
    *each("sigmoid|special_expit hardsigmoid", Role.FIXED, range=UNIT, integers=TABLE,
          floats=TABLE),
    *each("tanh sin cos erf|special_erf", Role.FIXED, range=SIGNED_UNIT, integers=TABLE,
          floats=TABLE),
    *each("floor ceil trunc|fix sign|sgn abs|absolute neg|negative", Role.COMPUTED,
          integers=TABLE, floats="elementwise:whole"),
    *each("gelu elu celu selu leaky_relu softplus hardshrink softshrink threshold round",
          Role.COMPUTED, integers=TABLE, floats="elementwise"),
    *each(
        """acos|arccos acosh|arccosh asin|arcsin asinh|arcsinh atan|arctan atanh|arctanh
        erfinv|special_erfinv logit|special_logit""",
        Role.COMPUTED,
        integers=TABLE,
        floats=NO_ARC,
    ),
    row("round.decimals", Role.COMPUTED, integers=TABLE,
        floats=missing("TOSA rounds to whole numbers only")),
    *each("relu relu6 hardtanh clamp|clip clamp_min clamp_max", Role.COMPUTED,
          integers="elementwise:clamp", floats="elementwise:clamp"),
    row("clamp.Tensor clip.Tensor clamp_min.Tensor clamp_max.Tensor", Role.COMPUTED,
        decomposition="arithmetic:clamp", integers=DECOMPOSED, floats="elementwise:clamp_tensor"),
    row("prelu.default _prelu_kernel.default", Role.COMPUTED, decomposition="arithmetic:prelu",
        integers=Missing("its slopes are above 1, or not constant", "use a leaky ReLU"),
        floats="elementwise"),
    row("glu.default", Role.COMPUTED, decomposition="arithmetic:glu", integers=DECOMPOSED,
        floats="elementwise"),
    # Arithmetic; `sub(x, y)` of numbers without a tensor is a table too.
    row("add.Tensor", Role.COMPUTED, cuttable=True, decomposition="arithmetic:unscale",
        integers="elementwise", floats="elementwise"),
    row("sub.Tensor subtract.Tensor", Role.COMPUTED, cuttable=True,
        decomposition="arithmetic:unscale", integers="elementwise", floats="elementwise"),
    row("mul.Tensor multiply.Tensor", Role.COMPUTED, cuttable=True,
        decomposition="arithmetic:with_numbers", integers="elementwise", floats="elementwise"),
    row("div.Tensor divide.Tensor true_divide.Tensor", Role.COMPUTED,
        decomposition="arithmetic:div", integers=DECOMPOSED, floats="elementwise"),
    *each("add.Scalar sub.Scalar|subtract.Scalar mul.Scalar|multiply.Scalar rsub.Scalar",
          Role.COMPUTED, integers=TABLE, floats="elementwise"),
    row("div.Scalar divide.Scalar true_divide.Scalar", Role.COMPUTED, integers=TABLE,
        floats="elementwise"),
    row("div.Tensor_mode divide.Tensor_mode", Role.COMPUTED,
        integers=NO_ROUNDED_QUOTIENT, floats="elementwise"),
    row("div.Scalar_mode divide.Scalar_mode", Role.COMPUTED, integers=TABLE, floats="elementwise"),
    row("rsub.Tensor", Role.COMPUTED, decomposition="arithmetic:rsub", integers=DECOMPOSED,
        floats="elementwise"),
    row("remainder.Scalar", Role.COMPUTED, integers=TABLE, floats=NO_REMAINDER),
    row("fmod.Scalar", Role.COMPUTED, integers=TABLE, floats=NO_REMAINDER),
    row("remainder.Tensor remainder.Scalar_Tensor fmod.Tensor", Role.COMPUTED,
        integers=NO_REMAINDER, floats=NO_REMAINDER),
    *each("pow.Tensor_Scalar pow.Scalar", Role.COMPUTED, integers=TABLE, floats="elementwise"),
    row("pow.Tensor_Tensor", Role.COMPUTED, floats="elementwise",
        integers=missing("a power of two tensors is no table of one")),
    row("atan2.default atan2.out arctan2.default", None, both=NO_ARC),
    row("addcmul.default", Role.COMPUTED, decomposition="arithmetic:addcmul", integers=DECOMPOSED,
        floats=missing("PyTorch takes it apart")),
    row("lerp.Tensor lerp.Scalar", Role.COMPUTED, decomposition="arithmetic:lerp",
        integers=DECOMPOSED, floats=missing("PyTorch takes it apart")),
    row("maximum.default max.other fmax.default", Role.SHARED, integers="elementwise",
        floats="elementwise"),
    row("minimum.default min.other fmin.default", Role.SHARED, integers="elementwise",
        floats="elementwise"),
    # Comparisons, truth values, choices.
    *each("eq.Tensor ge.Tensor|greater_equal.Tensor gt.Tensor|greater.Tensor "
          "le.Tensor|less_equal.Tensor lt.Tensor|less.Tensor ne.Tensor|not_equal.Tensor",
          Role.COMPARED, integers="elementwise:compare", floats="elementwise:compare"),
    *each("eq.Scalar ge.Scalar|greater_equal.Scalar gt.Scalar|greater.Scalar "
          "le.Scalar|less_equal.Scalar lt.Scalar|less.Scalar ne.Scalar|not_equal.Scalar",
          Role.COMPARED, integers="elementwise:compare_number", floats="elementwise:compare"),
    *each(
        """logical_and|bitwise_and.Tensor|bitwise_and.Scalar|__and__.Tensor|__and__.Scalar
        logical_or|bitwise_or.Tensor|bitwise_or.Scalar|__or__.Tensor|__or__.Scalar
        logical_xor|bitwise_xor.Tensor|bitwise_xor.Scalar|__xor__.Tensor|__xor__.Scalar""",
        both="choice:logical",
    ),
    row("logical_not.default bitwise_not.default", both="choice"),
    row("where.self where.ScalarOther where.ScalarSelf where.Scalar", Role.SHARED, both="choice"),
    row("masked_fill.Scalar masked_fill.Tensor", Role.COMPUTED,
        decomposition="arithmetic:masked_fill", both="choice"),
    *each("isinf isposinf isneginf", integers=missing("integers are all finite"),
          floats="elementwise:isinf"),
    *each("isnan nan_to_num", integers=missing("integers are all numbers"), floats="elementwise"),
)  # fmt: skip
