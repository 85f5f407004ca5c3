"""Operators that move elements, and look them up."""

from __future__ import annotations

from mizzen.frontends.onnx.operators.row import Operator, each

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
)
