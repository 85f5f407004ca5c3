"""Operators on each number: functions, arithmetic, bounds."""

from __future__ import annotations

from mizzen.frontends.onnx.operators.row import MICROSOFT, Operator, each

FUNCTION = "functions:unary"

ELEMENTWISE: tuple[Operator, ...] = (
    *each(
        "Abs Acos Asin Atan Ceil Cos Elu Exp Floor HardSigmoid Log Neg Reciprocal Selu Sigmoid "
        "Sin Softplus Softsign Sqrt Tan Tanh",
        FUNCTION,
    ),
    *each("Acosh Asinh Atanh Cosh Erf Shrink Sign Sinh", FUNCTION, 9),
    Operator("ThresholdedRelu", FUNCTION, 10),
    Operator("Round", FUNCTION, 11),
    Operator("Celu", FUNCTION, 12),
    Operator("HardSwish", FUNCTION, 14),
    Operator("Mish", FUNCTION, 18),
    Operator("Gelu", FUNCTION, 20),
    Operator("Swish", FUNCTION, 24),
    *each("Gelu QuickGelu", FUNCTION, domain=MICROSOFT),
    Operator("LeakyRelu", "functions:leaky_relu"),
    Operator("Pow", "functions:power"),
    Operator("PRelu", "arithmetic:prelu"),
    Operator("Relu", "bounds:relu"),
    Operator("Clip", "bounds:clip"),
    Operator("Add", "arithmetic:add"),
    Operator("Sub", "arithmetic:sub"),
    Operator("Mul", "arithmetic:mul"),
    Operator("Div", "arithmetic:div"),
    Operator("Max", "arithmetic:maximum"),
    Operator("Min", "arithmetic:minimum"),
)
