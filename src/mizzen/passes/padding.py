"""Let convolutions and poolings pad their input themselves.

An NPU reads padding for nothing, but makes a PAD by copying the tensor. PyTorch's causal and
asymmetric convolutions, and those that pad with other numbers than TensorFlow's, come with a PAD.
"""

from __future__ import annotations

from mizzen.graph import Graph, Value, integer_range
from mizzen.ops.builder import reshaped
from mizzen.ops.data_layout import Pad, Reshape
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d, MaxPool2d
from mizzen.passes.pipeline import Pass
from mizzen.patterns import Const, Is, Match, Pattern, Reject, Rule, Rules, Var, chain, op

SOURCE = Var("source")
AMOUNTS = Const("amounts")
NUMBER = Const("number")
ZERO = Const("zero")
PAD = op(Pad, SOURCE, AMOUNTS, NUMBER)
CONVOLUTION = op((Conv2d, DepthwiseConv2d), chain(op(Reshape, PAD)), input_zp=ZERO)
POOLING = op(
    MaxPool2d,
    chain(op(Reshape, PAD)),
    result=Is("of integers", lambda value: value.dtype.is_integer),
)


Reader = Conv2d | DepthwiseConv2d | MaxPool2d


def _reader(match: Match) -> Reader:
    return match[CONVOLUTION] if CONVOLUTION in match else match[POOLING]


def _pads_alike(match: Match) -> Reject | None:
    """Both pad with one number: a convolution with its zero point, a pooling with the least."""
    own = _only(match[ZERO]) if ZERO in match else integer_range(match.root.result.dtype)[0]
    if _only(match[NUMBER]) != own:
        return Reject(f"padding must be with {own}, and is with {_only(match[NUMBER])}", match[PAD])
    return None


def _pads_rows_and_columns(match: Match) -> Reject | None:
    """Nothing but rows and columns is padded, by less than the kernel covers."""
    amounts = _amounts(match)
    if amounts is None:
        return Reject("padding must be of rows and columns", match[PAD])
    reader = _reader(match)
    whole = _whole(reader, amounts)
    height, width = _kernel(reader)
    if max(whole[:2]) >= height or max(whole[2:]) >= width:
        return Reject(f"padding must be less than a kernel of {height}x{width}, and is {whole}")
    return None


def _fuse(graph: Graph, match: Match) -> None:
    reader, amounts = _reader(match), _amounts(match)
    assert amounts is not None
    batch, rows, columns, channels = reader.input.shape
    shape = (batch, rows - sum(amounts[:2]), columns - sum(amounts[2:]), channels)
    graph.set_operand(reader, 0, reshaped(graph, match[PAD], match[SOURCE], shape))
    reader.attributes = {**reader.attributes, "pad": _whole(reader, amounts)}


def _only(value: Value) -> int | float:
    array = value.constant
    assert array is not None
    return array.reshape(-1)[0].item()


def _whole(reader: Reader, amounts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(own + more for own, more in zip(reader.pad, amounts, strict=True))


def _amounts(match: Match) -> tuple[int, int, int, int] | None:
    """Return padding of rows and columns, if a PAD seen in a shape [N, H, W, C] is that only."""
    shape, padded = _reader(match).input.shape, match[PAD].result.shape
    numbers = match[AMOUNTS].constant
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


def _kernel(reader: Reader) -> tuple[int, int]:
    """Return the height and width that a kernel covers, dilated."""
    if isinstance(reader, MaxPool2d):
        height, width = reader.kernel
        return height, width
    depthwise = isinstance(reader, DepthwiseConv2d)
    sizes = reader.weight.shape[:2] if depthwise else reader.weight.shape[1:3]
    height, width = (
        (size - 1) * step + 1 for size, step in zip(sizes, reader.dilation, strict=True)
    )
    return height, width


GUARDS = (_pads_alike, _pads_rows_and_columns)
RULES = Rules(
    [
        Rule(Pattern("a convolution of padded values", CONVOLUTION, GUARDS), _fuse),
        Rule(Pattern("a pooling of padded values", POOLING, GUARDS), _fuse),
    ]
)

FUSE_PADDING = Pass("fuse-padding", RULES.rewrite)
"""Take a PAD into the `pad` of what reads it, where both pad with the same number."""
