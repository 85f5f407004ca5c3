"""Bring operators of old versions to the forms that they have now.

Over the years, attributes became inputs, and defaults other defaults. Each row of `FORMS` says
until which version an operator had the old form, and what makes the present one of it. What has no
row kept its form, which is held against the present schema.

Ref: ONNX, Operators, "Changelog".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from mizzen.frontends.onnx.draft import Draft, changed, has, made
from mizzen.frontends.onnx.model import Node
from mizzen.frontends.onnx.tensors import NUMBER_OF

Form = Callable[[Node, Draft], list[Node]]


def modern(node: Node, opset: int, draft: Draft) -> list[Node]:
    """Bring a node of a version to the newest form: one node, or several in order."""
    until, form = FORMS.get(node.kind, (0, None))
    parts = [node] if form is None or opset >= until else form(node, draft)
    return [whole for part in parts for whole in _whole(part, draft)]


def _whole(node: Node, draft: Draft) -> list[Node]:
    """Say what a node leaves to be understood from its inputs."""
    return WHOLE[node.kind](node, draft) if node.kind in WHOLE else [node]


def _integers(draft: Draft, node: Node, name: str, values: Any) -> str:
    return draft.constant(np.array(values, np.int64), f"{node.name}:{name}")


def _as_input(name: str) -> Form:
    """Make a list of integers, an attribute, the second input."""

    def form(node: Node, draft: Draft) -> list[Node]:
        if name not in node.attributes:
            return [node]
        values = _integers(draft, node, name, _tuple(draft, node, name))
        return [changed(node, inputs=(node.inputs[0], values), without=(name,))]

    return form


def _tuple(draft: Draft, node: Node, name: str) -> tuple[Any, ...]:
    value: Any = node.attributes.get(name, ())
    if not isinstance(value, tuple):
        raise draft.wrong(node, f'must have a list as "{name}", and has something else')
    return cast("tuple[Any, ...]", value)


def _clip(node: Node, draft: Draft) -> list[Node]:
    dtype = draft.types[node.inputs[0]].dtype.type
    limits = [
        draft.constant(dtype(node.attributes[name]), f"{node.name}:{name}")
        if isinstance(node.attributes.get(name), float)
        else ""
        for name in ("min", "max")
    ]
    return [changed(node, inputs=(node.inputs[0], *limits), without=("min", "max"))]


def _slice(node: Node, draft: Draft) -> list[Node]:
    starts, ends = _tuple(draft, node, "starts"), _tuple(draft, node, "ends")
    axes = _tuple(draft, node, "axes") or tuple(range(len(starts)))
    if not len(starts) == len(ends) == len(axes):
        raise draft.wrong(node, "must have as many ends and axes as starts, and has others")
    names = [
        _integers(draft, node, name, values)
        for name, values in (("starts", starts), ("ends", ends), ("axes", axes))
    ]
    return [changed(node, inputs=(node.inputs[0], *names), without=("starts", "ends", "axes"))]


def _pad(node: Node, draft: Draft) -> list[Node]:
    dtype = draft.types[node.inputs[0]].dtype.type
    filled = node.attributes.get("value", 0.0)
    if not isinstance(filled, float):
        raise draft.wrong(node, 'must have a number as "value", and has something else')
    value = draft.constant(dtype(filled), f"{node.name}:value")
    pads = _integers(draft, node, "pads", _tuple(draft, node, "pads"))
    return [changed(node, inputs=(node.inputs[0], pads, value), without=("pads", "value"))]


def _top_k(node: Node, draft: Draft) -> list[Node]:
    if "k" not in node.attributes:
        return [node]
    count = _integers(draft, node, "k", [node.attributes["k"]])
    return [changed(node, inputs=(node.inputs[0], count), without=("k",))]


def _dropout(node: Node, draft: Draft) -> list[Node]:
    return [changed(node, inputs=node.inputs[:1], without=("ratio",))]


def _softmax(node: Node, draft: Draft) -> list[Node]:
    """Before version 13, all dimensions from the axis on are one."""
    shape = draft.shape(node.inputs[0])
    axis = node.attributes.get("axis", 1)
    if not isinstance(axis, int) or not -len(shape) <= axis <= len(shape):
        raise draft.wrong(node, f"must have an axis of its {len(shape)} dimensions, and has {axis}")
    axis = axis + len(shape) if axis < 0 else axis
    behind = [extent for extent in shape[axis + 1 :] if extent != 1]
    if axis < len(shape) and not behind:
        return [changed(node, axis=axis)]
    if axis < len(shape) and shape[axis] == 1 and len(behind) == 1:
        return [changed(node, axis=axis + 1 + shape[axis + 1 :].index(behind[0]))]
    lead = int(np.prod(shape[:axis]))
    flat, result = draft.fresh(f"{node.name}:flat"), draft.fresh(f"{node.name}:rows")
    to = _integers(draft, node, "flat_shape", [lead, int(np.prod(shape[axis:]))])
    back = _integers(draft, node, "shape", shape)
    return [
        made(node, "Reshape", (node.inputs[0], to), (flat,)),
        changed(node, inputs=(flat,), outputs=(result,), axis=1),
        made(node, "Reshape", (result, back), node.outputs),
    ]


def _upsample(node: Node, draft: Draft) -> list[Node]:
    if "scales" in node.attributes:
        factors = np.array(_tuple(draft, node, "scales"), np.float32)
        scales = draft.constant(factors, f"{node.name}:scales")
    elif has(node, 1):
        scales = node.inputs[1]
    else:
        raise draft.wrong(node, "must have scales, and has none")
    resize = changed(node, kind="Resize", inputs=(node.inputs[0], scales), without=("scales",))
    return _resize(resize, draft)


def _resize(node: Node, draft: Draft) -> list[Node]:
    """Version 10 says no coordinates: those of the result divided by the scale, rounded down.

    Rounded up where a dimension shrinks, as ONNX Runtime has it.
    """
    if "coordinate_transformation_mode" in node.attributes or len(node.inputs) != 2:
        return [node]
    value = draft.value(node.inputs[1])
    if value is None:
        raise draft.refused(node, "must have constant scales, and has others")
    shrinks, grows = bool(np.any(value < 1)), bool(np.any(value > 1))
    mode = node.attributes.get("mode", "nearest")
    if mode == "nearest" and shrinks and grows:
        raise draft.refused(
            node,
            "of version 10 must make all extents larger or all smaller, and does both",
            "export the network with opset 11 or later",
        )
    return [
        changed(
            node,
            inputs=(node.inputs[0], "", node.inputs[1]),
            mode="linear" if mode in ("linear", "bilinear") else mode,
            coordinate_transformation_mode="asymmetric",
            nearest_mode="ceil" if shrinks else "floor",
        )
    ]


def _batch_normalization(node: Node, draft: Draft) -> list[Node]:
    if node.attributes.get("spatial", 1) != 1:
        raise draft.refused(node, "must have a mean for each channel, and has one for each element")
    return [changed(node, outputs=node.outputs[:1], without=("spatial", "is_test"))]


def _group_normalization(node: Node, draft: Draft) -> list[Node]:
    """Before version 21, scale and bias are one for each group."""
    groups, channels = node.attributes.get("num_groups"), draft.shape(node.inputs[0])[1:2]
    inputs = [node.inputs[0]]
    for place in (1, 2):
        value = draft.input_value(node, place)
        if value is None or not isinstance(groups, int) or groups < 1 or not channels:
            raise draft.refused(node, "of version 18 must have constant scales, and has others")
        inputs.append(draft.constant(np.repeat(value, channels[0] // groups), f"{node.name}:scale"))
    return [changed(node, inputs=tuple(inputs))]


def _split(node: Node, draft: Draft) -> list[Node]:
    """Say the sizes of the parts, which were an attribute, or equal where nothing said them."""
    if has(node, 1):
        return [node]
    sizes = _tuple(draft, node, "split") if "split" in node.attributes else None
    if sizes is None:
        shape, axis = draft.shape(node.inputs[0]), node.attributes.get("axis", 0)
        if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
            raise draft.wrong(node, f"must have an axis of {len(shape)} dimensions, and has {axis}")
        size, rest = divmod(shape[axis], len(node.outputs))
        if rest:
            rule = f"must have an extent that {len(node.outputs)} parts divide"
            raise draft.wrong(node, f"{rule}, and has {shape[axis]}")
        sizes = (size,) * len(node.outputs)
    name = _integers(draft, node, "split", sizes)
    return [changed(node, inputs=(node.inputs[0], name), without=("split",))]


def _grid_sample(node: Node, draft: Draft) -> list[Node]:
    names = {"bilinear": "linear", "bicubic": "cubic"}
    mode = node.attributes.get("mode", "bilinear")
    return [changed(node, mode=names.get(mode, mode))]


def _dft(node: Node, draft: Draft) -> list[Node]:
    axis = draft.constant(np.array(node.attributes.get("axis", 1), np.int64), f"{node.name}:axis")
    length = node.inputs[1] if has(node, 1) else ""
    return [changed(node, inputs=(node.inputs[0], length, axis), without=("axis",))]


def _scatter(node: Node, draft: Draft) -> list[Node]:
    return [changed(node, kind="ScatterElements")]


def _pads_of_all(node: Node, draft: Draft) -> list[Node]:
    """Pad all dimensions, where some are chosen."""
    axes, pads = draft.input_value(node, 3), draft.input_value(node, 1)
    if axes is None or pads is None:
        return [node]
    rank = len(draft.shape(node.inputs[0]))
    chosen = axes.reshape(-1)
    if pads.size != 2 * chosen.size or np.any(chosen < -rank) or np.any(chosen >= rank):
        raise draft.wrong(node, "must have two pads for each of its axes, and has others")
    every = np.zeros((2, rank), np.int64)
    every[:, chosen] = pads.reshape(2, -1)
    value = node.inputs[2] if has(node, 2) else ""
    name = _integers(draft, node, "pads", every.reshape(-1))
    return [
        changed(node, inputs=(node.inputs[0], name, value) if value else (node.inputs[0], name))
    ]


def _squeezed_axes(node: Node, draft: Draft) -> list[Node]:
    if has(node, 1):
        return [node]
    axes = [place for place, extent in enumerate(draft.shape(node.inputs[0])) if extent == 1]
    return [changed(node, inputs=(node.inputs[0], _integers(draft, node, "axes", axes)))]


def _cast_like(node: Node, draft: Draft) -> list[Node]:
    to = NUMBER_OF[draft.types[node.inputs[1]].dtype]
    return [changed(node, kind="Cast", inputs=node.inputs[:1], to=to)]


def _parts(node: Node, draft: Draft) -> list[Node]:
    """Say the sizes of parts that are only counted, of which the last may be smaller."""
    count: int = node.attributes.get("num_outputs", 0)
    if has(node, 1) or count < 1:
        return [node]
    shape = draft.shape(node.inputs[0])
    axis: int = node.attributes.get("axis", 0)
    if not -len(shape) <= axis < len(shape) or count != len(node.outputs):
        raise draft.wrong(node, "must have an axis, and as many outputs as it says, and has not")
    size = -(-shape[axis] // count)
    sizes = [max(0, min(size, shape[axis] - size * place)) for place in range(count)]
    name = _integers(draft, node, "split", sizes)
    return [changed(node, inputs=(node.inputs[0], name), without=("num_outputs",))]


WHOLE: Mapping[str, Form] = {
    "CastLike": _cast_like,
    "Pad": _pads_of_all,
    "Split": _parts,
    "Squeeze": _squeezed_axes,
}
"""What makes a node say what it leaves to be understood."""

_AXES = _as_input("axes")

FORMS: Mapping[str, tuple[int, Form]] = {
    "BatchNormalization": (14, _batch_normalization),
    "Clip": (11, _clip),
    "DFT": (20, _dft),
    "Dropout": (12, _dropout),
    "GridSample": (20, _grid_sample),
    "GroupNormalization": (21, _group_normalization),
    "Hardmax": (13, _softmax),
    "LogSoftmax": (13, _softmax),
    "Pad": (11, _pad),
    "ReduceL1": (18, _AXES),
    "ReduceL2": (18, _AXES),
    "ReduceLogSum": (18, _AXES),
    "ReduceLogSumExp": (18, _AXES),
    "ReduceMax": (18, _AXES),
    "ReduceMean": (18, _AXES),
    "ReduceMin": (18, _AXES),
    "ReduceProd": (18, _AXES),
    "ReduceSum": (13, _AXES),
    "ReduceSumSquare": (18, _AXES),
    "Resize": (11, _resize),
    "Scatter": (11, _scatter),
    "Slice": (10, _slice),
    "Softmax": (13, _softmax),
    "Split": (18, _split),
    "Squeeze": (13, _AXES),
    "TopK": (10, _top_k),
    "Unsqueeze": (13, _AXES),
    "Upsample": (99, _upsample),
}
"""Until which version an operator had an old form, and what takes that form."""
