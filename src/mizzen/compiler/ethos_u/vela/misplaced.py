"""Parts of tensors that the compiler reads or writes in the wrong place.

What makes a part of a tensor, or a tensor of parts, becomes a way of reading or writing the tensor
of another operator. Where the compiler makes several operations of that one, or reads it by steps,
it loses the part's offset, size or step. The numbers are wrong whatever they are, but where all of
them are alike no proof sees it. Without what makes the part, the operator is right.

Ref: Vela 5.2.0, found by running pairs of operators.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mizzen.diagnostics import Reason
from mizzen.frontends.tflite import Model, Operator
from mizzen.targets.ethos_u.machine.commands import Arch

PARTS = frozenset(("SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "UNPACK"))
"""Operators that give parts of a tensor."""

JOINING = frozenset(("CONCATENATION", "PACK"))
"""Operators that make one tensor of several."""

VIEWS = frozenset(("RESHAPE", "EXPAND_DIMS", "SQUEEZE"))

WINDOWED = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"))
"""Operators that read a map with strides of their own."""

PAIRED = frozenset(("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "SOFTMAX"))
"""Operators of two feature maps, or that become such."""

RULE = "misplaced-part"
SOURCE = "Vela 5.2.0 compiles it wrongly, found by running the result"


def misplaced(model: Model, arch: Arch) -> Iterator[tuple[int, Reason]]:
    """Return the operators that must be on the CPU for another to be right, by index, and why."""
    main = model.main
    makers = {index: row for row in main.operators for index in row.outputs}
    for operator in main.operators:
        for index in operator.inputs:
            mover = _behind_views(makers, index)
            if mover is None or main.tensors[index].data is not None:
                continue
            if mover.kind in PARTS and _loses(model, mover, operator, arch):
                yield mover.index, _reason(f"the part that this {mover.kind} gives", operator)
            if operator.kind in JOINING and _spills(model, mover, operator, arch):
                said = f"the part of the tensor that this {operator.kind} makes"
                yield operator.index, _reason(said, mover)
    if arch is not Arch.U85:
        yield from _expanded(model, makers)


def _expanded(model: Model, makers: dict[int, Operator]) -> Iterator[tuple[int, Reason]]:
    """Return operators that broadcast both operands, one of which is a factor of a product, too.

    The compiler makes an expanded copy of that, which BATCH_MATMUL then reads.
    """
    main = model.main
    products = [row for row in main.operators if row.kind == "BATCH_MATMUL"]
    for operator in main.operators:
        if not products or operator.kind not in PAIRED or len(operator.inputs) != 2:
            continue
        given = main.tensors[operator.outputs[0]].elements
        if any(main.tensors[index].elements == given for index in operator.inputs):
            continue
        taken = {_viewed(makers, index) for index in operator.inputs}
        for product in products:
            if taken & {_viewed(makers, index) for index in product.inputs}:
                yield operator.index, _reason(f"what this {operator.kind} broadcasts", product)


def _viewed(makers: dict[int, Operator], index: int) -> int:
    """Return the tensor that a tensor is a view of, or itself."""
    while (row := makers.get(index)) is not None and row.kind in VIEWS:
        index = row.inputs[0]
    return index


def _behind_views(makers: dict[int, Operator], index: int) -> Operator | None:
    """Return the operator that makes a tensor, or one that it is a view of."""
    row = makers.get(index)
    while row is not None and row.kind in VIEWS:
        row = makers.get(row.inputs[0])
    return row


def _loses(model: Model, mover: Operator, operator: Operator, arch: Arch) -> bool:
    """Whether an operator reads something else than the part that it is given."""
    if _multiplies_channels(model, operator):
        return True
    stepped = _stepped(model, mover)
    match operator.kind:
        case "TRANSPOSE_CONV":
            return arch is not Arch.U85 or stepped or _cuts_plane(model, mover)
        case "SUM":
            return arch is Arch.U85
        case kind if kind in WINDOWED:
            return stepped
        case kind if kind in PAIRED:
            return stepped and arch is not Arch.U85
        case _:
            return False


def _spills(model: Model, operator: Operator, joining: Operator, arch: Arch) -> bool:
    """Whether an operator writes something else than its part of what joins it to others."""
    if _multiplies_channels(model, operator):
        return True
    if operator.kind == "TRANSPOSE_CONV":
        return arch is Arch.U85 and _cuts_plane(model, joining)
    centred = operator.kind == "RESIZE_BILINEAR" and operator.options.get("half_pixel_centers")
    return bool(centred) and arch is not Arch.U85


def _multiplies_channels(model: Model, operator: Operator) -> bool:
    """Whether the compiler makes an operation of each multiple of several channels."""
    if operator.kind != "DEPTHWISE_CONV_2D":
        return False
    taken = model.main.tensors[operator.inputs[0]].shape[-1:]
    given = model.main.tensors[operator.outputs[0]].shape[-1:]
    return taken not in {given, (1,)}


def _cuts_plane(model: Model, mover: Operator) -> bool:
    """Whether the parts are not whole in height and width; so if ranks differ."""
    tensors = model.main.tensors
    shapes = {tensors[index].shape for index in (*mover.inputs, *mover.outputs)
              if tensors[index].data is None}  # fmt: skip
    if len({len(shape) for shape in shapes}) > 1:
        return True
    return len({shape[:-1] for shape in shapes}) > 1


def _stepped(model: Model, mover: Operator) -> bool:
    """Whether a part is every second element, or every third, of an axis."""
    if mover.kind != "STRIDED_SLICE":
        return False
    strides = model.main.tensors[mover.inputs[3]].values
    return strides is None or bool(np.any(np.abs(strides) > 1))


def _reason(part: str, operator: Operator) -> Reason:
    return Reason(
        RULE,
        f"the compiler misplaces {part}, where {operator.kind} {operator.index} is beside it",
        help="nothing needs doing if the CPU has time for it",
        source=SOURCE,
    )
