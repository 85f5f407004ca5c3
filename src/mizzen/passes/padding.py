"""Let convolutions and poolings pad their input themselves.

An NPU reads padding for nothing, but makes a PAD by copying the tensor. PyTorch's causal and
asymmetric convolutions, and those that pad with other numbers than TensorFlow's, come with a PAD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mizzen.graph import DType, Graph, Operation, Value, integer_range

PADDING = frozenset({"CONV2D", "DEPTHWISE_CONV2D", "MAX_POOL2D"})


@dataclass(frozen=True, slots=True)
class FusePadding:
    """Take a PAD into the `pad` of what reads it, where both pad with the same number."""

    name: ClassVar[str] = "fuse-padding"

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph; True if anything changed."""
        changed = False
        for operation in graph:
            if operation.kind in PADDING:
                changed |= _fuse(graph, operation)
        if changed:
            graph.erase_dead()
        return changed


def _fuse(graph: Graph, operation: Operation) -> bool:
    pad = _pad_before(operation.operands[0])
    if pad is None or _number(pad) != _own_number(operation):
        return False
    amounts = _amounts(pad, operation.operands[0].shape)
    if amounts is None:
        return False
    own = operation["pad"]
    whole = tuple(a + b for a, b in zip(own, amounts, strict=True))
    height, width = _kernel(operation)
    if max(whole[:2]) >= height or max(whole[2:]) >= width:
        return False
    batch, rows, columns, channels = operation.operands[0].shape
    shape = (batch, rows - sum(amounts[:2]), columns - sum(amounts[2:]), channels)
    graph.set_operand(operation, 0, _reshaped(graph, pad, shape))
    operation.attributes = {**operation.attributes, "pad": whole}
    return True


def _pad_before(value: Value) -> Operation | None:
    """Give the PAD that a value comes from, if only RESHAPEs are in between."""
    producer = value.producer
    while producer is not None and producer.kind == "RESHAPE":
        producer = producer.operands[0].producer
    if producer is None or producer.kind != "PAD":
        return None
    return producer if producer.operands[1].constant is not None else None


def _number(pad: Operation) -> int | float | None:
    constant = pad.operands[2].constant
    return None if constant is None else constant.reshape(-1)[0].item()


def _own_number(operation: Operation) -> int | float | None:
    """Give what the operation pads with: its input's zero point, or the least number."""
    if operation.kind == "MAX_POOL2D":
        dtype = operation.operands[0].dtype
        return integer_range(dtype)[0] if dtype.is_integer else None
    zero = operation.operands[3].constant
    return None if zero is None else zero.reshape(-1)[0].item()


def _amounts(pad: Operation, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Give the padding of rows and columns, if a PAD seen in a shape [N, H, W, C] is that only."""
    padded = pad.result.shape
    numbers = pad.operands[1].constant
    assert numbers is not None
    before = numbers.reshape(-1, 2).tolist()
    seen = [(size, tuple(before[dim])) for dim, size in enumerate(padded) if size > 1]
    if [size for size, _ in seen] != [size for size in shape if size > 1]:
        return None
    amounts = iter([amount for _, amount in seen])
    batch, rows, columns, channels = [next(amounts) if size > 1 else (0, 0) for size in shape]
    if any((*batch, *channels)):
        return None
    return rows[0], rows[1], columns[0], columns[1]


def _kernel(operation: Operation) -> tuple[int, int]:
    """Give the height and width that a kernel covers, dilated."""
    if operation.kind == "MAX_POOL2D":
        height, width = operation["kernel"]
        return height, width
    weights = operation.operands[1].shape
    sizes = weights[:2] if operation.kind == "DEPTHWISE_CONV2D" else weights[1:3]
    height, width = (
        (size - 1) * step + 1 for size, step in zip(sizes, operation["dilation"], strict=True)
    )
    return height, width


def _reshaped(graph: Graph, pad: Operation, shape: tuple[int, ...]) -> Value:
    value = pad.operands[0]
    if value.shape == shape:
        return value
    numbers = graph.constant(shape, DType.SHAPE)
    return graph.add(
        "RESHAPE",
        (value, numbers),
        (value.type.with_shape(shape),),
        origin=pad.origin,
        group=pad.group,
    ).result
