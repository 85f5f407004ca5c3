"""Operators that move elements, look them up, or choose among them."""

from __future__ import annotations

from mizzen.frontends.onnx.operators.row import Operator, each, missing

SCATTERED = missing(
    "it writes at places among others, of which none may come twice on an NPU",
    "write it with Concat and Slice, or with Where",
)

MOVEMENT: tuple[Operator, ...] = (
    Operator("Identity", "shapes:identity"),
    *each("Reshape Flatten Squeeze Unsqueeze", "shapes:reshaped"),
    Operator("Transpose", "shapes:transpose"),
    Operator("Expand", "shapes:copied", 8),
    Operator("Tile", "shapes:copied", 6),
    Operator("Concat", "parts:concatenated"),
    Operator("Split", "parts:split"),
    Operator("Slice", "parts:slice_"),
    Operator("Pad", "parts:pad"),
    Operator("DepthToSpace", "blocks:depth_to_space"),
    Operator("SpaceToDepth", "blocks:space_to_depth"),
    Operator("Resize", "images:resize", 10),
    Operator("Gather", "lookups:gather"),
    Operator("GatherElements", "lookups:gather_elements", 11),
    Operator("GatherND", "lookups:gather_nd", 11),
    Operator("ReverseSequence", "lookups:reverse_sequence", 10),
    Operator("OneHot", "lookups:one_hot", 9),
    Operator("Hardmax", "lookups:hardmax"),
    Operator("Trilu", "lookups:trilu", 14),
    Operator("Scatter", SCATTERED, 9),
    *each("ScatterElements ScatterND", SCATTERED, 11),
)

CHOICES: tuple[Operator, ...] = (
    *each("Equal Greater Less", "choices:compare"),
    *each("GreaterOrEqual LessOrEqual", "choices:compare", 12),
    *each("And Or Xor", "choices:logical"),
    Operator("Not", "choices:logical_not"),
    *each("BitwiseAnd BitwiseOr BitwiseXor", "choices:bitwise", 18),
    Operator("BitwiseNot", "choices:bitwise_not", 18),
    Operator("Where", "choices:where", 9),
    Operator("Cast", "choices:cast", 6),
    Operator("Mod", "choices:mod", 10),
)
